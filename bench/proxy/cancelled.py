#!/usr/bin/env python3
"""100,000 requests whose clients leave: while an attempt waits for its answer, while the call waits for its retry, and within a
response's body. Afterwards `relent proxy` holds no more descriptors, threads, calls or memory than before.

usage: cancelled.py RELENT [REQUESTS]
"""
import asyncio, random, re, socket, struct, sys, time

from stand import Proxy, taken

PORT, ADMIN, UP = 8051, 8052, 9151
POLICY = f"""version = 1
[proxy]
listen = "127.0.0.1:{PORT}"
admin = "127.0.0.1:{ADMIN}"
access_log = "none"
[policy.p]
attempts = 3
backoff = {{ base = "1h", cap = "1h", jitter = "none" }}
attempt_timeout = "none"
deadline = "none"
budget = "none"
[upstream.u]
endpoints = ["http://127.0.0.1:{UP}"]
idle_timeout = "1s"
[[route]]
upstream = "u"
policy = "p"
"""
GAUGES = ("relent_requests_in_flight", "relent_client_connections", "relent_calls_waiting", "relent_replay_bytes")
WAYS = ("silent", "busy", "begin")
CLIENTS = 50
# Megabytes that a hundred thousand cancelled requests may add after the first ten thousand.
GROWTH = 0.5
BODY = b"x" * 1000
# Closed so, a connection is reset: nothing waits for its end, and the client's ports are free again.
RESET = struct.pack("ii", 1, 0)


class Service(asyncio.Protocol):
    """/silent is never answered, /busy is with 503, /begin with a head and half a body; each tells the client that it was here."""

    arrived = {}

    def connection_made(self, transport):
        self.transport, self.left = transport, b""

    def data_received(self, data):
        self.left += data
        while match := re.search(rb"^(?:GET|PUT) /(\w+)/(\d+) .*?\r\n\r\n", self.left, re.DOTALL):
            length = re.search(rb"(?i)\r\ncontent-length: (\d+)", match[0])
            end = match.end() + (int(length[1]) if length else 0)
            if len(self.left) < end:
                return
            self.left = self.left[end:]
            self.answer(match[1])
            if (waiting := Service.arrived.pop(int(match[2]), None)) and not waiting.done():
                waiting.set_result(None)

    def answer(self, way):
        if way == b"busy":
            self.transport.write(b"HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy")
        elif way == b"begin":
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2000\r\n\r\n" + BODY)
        elif way == b"hello":
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")


async def leave(number, dice):
    """One request, and its client leaves when it has arrived; half of them with a reset, half with a proper end."""
    way = WAYS[number % len(WAYS)]
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT, local_addr=(f"127.0.0.{2 + number % 50}", 0))
    arrived = Service.arrived[number] = asyncio.get_running_loop().create_future()
    head = f"{'PUT' if number % 2 else 'GET'} /{way}/{number} HTTP/1.1\r\nhost: a\r\n"
    writer.write((head + ("content-length: 1000\r\n\r\n" if number % 2 else "\r\n")).encode() + (BODY if number % 2 else b""))
    await asyncio.wait_for(arrived, 20)
    if way == "begin":
        await reader.readuntil(b"\r\n\r\n")
    elif way == "busy" and dice.random() < 0.5:
        await asyncio.sleep(0.001)
    if dice.random() < 0.5:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.close()
    try:
        await writer.wait_closed()
    except ConnectionError:
        pass


async def many(first, last):
    numbers = iter(range(first, last))

    async def client(place):
        dice = random.Random(place)
        for number in numbers:
            await leave(number, dice)

    await asyncio.gather(*(client(place) for place in range(CLIENTS)))


async def hello(number):
    """The service is reached as before."""
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    writer.write(f"GET /hello/{number} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"hello")


async def at_rest(proxy, least):
    """Until nothing is open any more, for 20 s at most; gauges, descriptors, threads and memory then."""
    for _ in range(200):
        gauges = {name: await asyncio.to_thread(proxy.metric, name) for name in GAUGES}
        state = (gauges, proxy.descriptors(), proxy.threads(), proxy.megabytes("VmRSS"))
        if not any(gauges.values()) and state[1] <= least:
            break
        await asyncio.sleep(0.1)
    return state


async def main(relent, requests):
    if taken(UP):
        raise SystemExit(f"port {UP} is in use: end what listens there")
    await asyncio.get_running_loop().create_server(Service, "127.0.0.1", UP, backlog=4096)
    with Proxy(relent, POLICY, PORT, ADMIN) as proxy:
        warm = requests * 3 // 10
        good = await hello(0)
        fresh = await at_rest(proxy, 0 if not good else proxy.descriptors() - 1)
        await many(1, warm + 1)
        before = await at_rest(proxy, fresh[1])
        began = time.monotonic()
        await many(warm + 1, warm + 1 + requests)
        took = time.monotonic() - began
        after = await at_rest(proxy, before[1])
        good &= await hello(0)
        gone = await asyncio.to_thread(proxy.metric, "relent_calls_total", 'status="gone"')
        broken = await asyncio.to_thread(proxy.metric, "relent_broken_responses_total")
    print("| | fds | threads | " + " | ".join(name.removeprefix("relent_") for name in GAUGES) + " | VmRSS, MB |\n|---|" + "--:|" * (3 + len(GAUGES)))
    for name, (gauges, fds, threads, megabytes) in (("after one request", fresh), (f"after {warm:,} cancelled", before), (f"after {requests:,} more, in {took:.0f} s", after)):
        print(f"| {name} | {fds} | {threads} | " + " | ".join(f"{gauges[gauge]:.0f}" for gauge in GAUGES) + f" | {megabytes:.2f} |")
    told = gone + broken
    print(f"\ncalls whose client left before an answer: {gone:.0f}; within one: {broken:.0f}; together {told:.0f} of {requests + warm}")
    print(f"descriptors {after[1] - before[1]:+d}, threads {after[2] - before[2]:+d}, memory {after[3] - before[3]:+.2f} MB (at most {GROWTH}); answers as before: {'yes' if good else 'no'}")
    flat = after[1] <= before[1] <= fresh[1] and after[2] <= before[2] and after[3] - before[3] <= GROWTH
    return good and flat and told == requests + warm and not any(after[0].values())


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    sys.exit(not asyncio.run(main(sys.argv[1], int((sys.argv[2:] or [100_000])[0]))))
