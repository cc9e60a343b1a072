"""Three accounts of the same calls, held against each other: what clients were answered, what the access log says, and what the
endpoints read. Each check names what would be wrong; none of them takes the proxy's word for it where another account has it."""
import bisect, collections, dataclasses, datetime

# A killed process is gone a little after the signal; clocks are read a little before or after what they date.
KILL_TAKES, BLUR = 0.3, 0.02
# The budget's window turns in tenths.
ROUGHLY = 0.8


@dataclasses.dataclass
class Policy:
    attempts: int
    ratio: float
    window: float


class Call:
    """One line of the access log, with the times of its attempts, in seconds since 1970."""

    def __init__(self, line):
        self.number = int(line["path"][1:])
        self.status, self.stop, self.attempts = line["status"], line.get("stop"), line["attempts"]
        self.began = datetime.datetime.fromisoformat(line["time"].replace("Z", "+00:00")).timestamp()
        self.ended = self.began + line["duration_ms"] / 1000
        self.spans, now = {}, self.began
        for attempt in self.attempts:
            start = now + attempt["wait_ms"] / 1000
            now = start + attempt["ms"] / 1000
            self.spans[attempt["number"]] = (start, now)

    def free(self):
        """The attempts that followed a stale connection, upon which nothing was written: no tokens are taken for those."""
        pairs = zip(self.attempts, self.attempts[1:])
        return {then["number"] for first, then in pairs if "failure" in first and first["reused"] and not first["wrote"]}

    def paid(self):
        """When its paid retries began."""
        free = self.free()
        return [self.spans[attempt["number"]][0] for attempt in self.attempts[1:] if attempt["number"] not in free]


def report(ends, lines, arrived, kills, policy):
    """Prints the findings; whether there is nothing to find."""
    calls = [Call(line) for line in lines if line.get("path", "/")[1:].isdigit()]
    summary(ends, calls)
    retries = sum(len(call.paid()) for call in calls)
    print(f"{sum(len(call.attempts) for call in calls)} attempts: {retries} paid retries, {sum(len(call.free()) for call in calls)} free repeats")
    findings = [
        ("requests without one line in the log", unlogged(ends, calls)),
        ("answered otherwise than the log says", [call.number for call in calls if ends.get(call.number, (None,))[0] != call.status]),
        ("lost though policy and budget allowed a retry", lost(ends, calls, policy)),
        *upstream(calls, arrived, kills),
    ]
    for name, found in findings:
        print(f"{name}: {len(found)}" + (f", such as {found[:5]}" if found else ""))
    return not any(found for _, found in findings)


def summary(ends, calls):
    good = sum(status == 200 for status, _ in ends.values())
    print(f"{len(ends)} requests: {good} answered 200")
    for (status, stop), count in sorted(collections.Counter(end for end in ends.values() if end[0] != 200).items()):
        print(f"  {count} answered {status}, {stop}")
    saved = sum(call.status == 200 and len(call.attempts) > 1 for call in calls)
    print(f"{saved} of the good ones would have failed without a retry")


def unlogged(ends, calls):
    counts = collections.Counter(call.number for call in calls)
    return [number for number in ends if counts[number] != 1]


def lost(ends, calls, policy):
    """Failed, and the reason that was given is none, or is not true."""
    by_number = {call.number: call for call in calls}
    successes = sorted(call.ended for call in calls if call.status == 200)
    retries = sorted(start for call in calls for start in call.paid())

    def within(times, end):
        return bisect.bisect_right(times, end) - bisect.bisect_left(times, end - policy.window)

    def is_true(call, stop):
        tries = len(call.attempts) - len(call.free())
        if stop == "AttemptsExhausted":
            return tries == policy.attempts
        spent, share = within(retries, call.ended), policy.ratio * within(successes, call.ended)
        return stop == "BudgetExhausted" and tries < policy.attempts and spent >= ROUGHLY * share

    failed = [(number, stop) for number, (status, stop) in ends.items() if status != 200]
    return [(number, stop) for number, stop in failed if number not in by_number or not is_true(by_number[number], stop)]


def upstream(calls, arrived, kills):
    """The endpoints' account against the log's."""
    read = {(number, attempt): port for number, attempt, port in arrived}
    doubled = [key for key, count in collections.Counter((number, attempt) for number, attempt, _ in arrived).items() if count > 1]
    wrote, gaps, silent, unexplained, killed = {}, [], [], [], 0
    for call in calls:
        if [attempt["number"] for attempt in call.attempts] != list(range(1, len(call.attempts) + 1)):
            gaps.append(call.number)
        for attempt in call.attempts:
            key, port = (call.number, attempt["number"]), int(attempt["endpoint"].rsplit(":", 1)[1])
            if not attempt["wrote"]:
                silent += [key] if "status" in attempt else []
                continue
            wrote[key] = port
            if key not in read and by_a_kill(call, attempt, port, kills):
                killed += 1
            elif key not in read:
                unexplained.append((*key, attempt))
    print(f"{len(wrote)} attempts wrote bytes: {len(arrived)} were read by an endpoint, {killed} met one that was killed before it read them")
    return [
        ("attempt numbers that an endpoint saw twice for a request", doubled),
        ("requests whose attempts are not numbered 1, 2, 3, … in the log", gaps),
        ("attempts with an answer that are said to have written nothing", silent),
        ("attempts that an endpoint read, and the log denies or puts elsewhere", [key for key in read if read[key] != wrote.get(key)]),
        ("attempts that wrote bytes, and that no endpoint read, and no kill explains", unexplained),
    ]


def by_a_kill(call, attempt, port, kills):
    if attempt.get("failure") not in ("reset", "timeout"):
        return False
    start, end = call.spans[attempt["number"]]
    return any(killed == port and start <= when + KILL_TAKES and end >= when - BLUR for when, killed in kills)
