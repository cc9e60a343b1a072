#!/usr/bin/env python3
"""Nothing is lost that policy and budget allowed to save: two endpoints that answer 10 % 503, one of them killed and restarted
every 2 s, idempotent requests through `relent proxy`; what arrived is held against the access log.

usage: lost.py RELENT [SECONDS [REQUESTS_PER_SECOND]]
"""
import asyncio, collections, json, os, random, re, signal, subprocess, sys, tempfile, time

PORT, UP = 8041, (9141, 9142)
POLICY = """version = 1
[proxy]
listen = "127.0.0.1:%d"
outcome_header = true
access_log = "%s"
[policy.p]
attempts = 4
backoff = { base = "5ms", cap = "50ms" }
attempt_timeout = "1s"
deadline = "5s"
budget = { ratio = 0.25, reserve = 50 }
[upstream.u]
endpoints = ["http://127.0.0.1:%d", "http://127.0.0.1:%d"]
[[route]]
upstream = "u"
policy = "p"
"""


async def endpoint(port, log):
    """One endpoint: writes down every head that it has read, then answers."""
    out = open(log, "a", buffering=1)

    async def serve(reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                number = re.search(r"x-envoy-attempt-count: (\d+)", head)[1]
                out.write(f"{re.search(r'GET /(.*?) ', head)[1]} {number}\n")
                status, text = ("503 Busy", "busy") if random.random() < 0.1 else ("200 OK", "done")
                writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 4\r\n\r\n{text}".encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


async def load(seconds, rate):
    """Requests at a steady rate over 64 connections; what each came to."""
    ends, queue = {}, asyncio.Queue()

    async def client():
        reader = writer = None
        while (request := await queue.get()) is not None:
            try:
                if writer is None:
                    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
                writer.write(f"GET /{request} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                await reader.readexactly(int(re.search(r"content-length: (\d+)", head)[1]))
                ends[request] = (int(head[9:12]), re.search(r"relent-outcome: stop=(\w+)", head)[1])
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                ends[request], writer = (0, type(error).__name__), None

    clients = [asyncio.create_task(client()) for _ in range(64)]
    began = time.monotonic()
    for number in range(int(seconds * rate)):
        await asyncio.sleep(max(0, began + number / rate - time.monotonic()))
        queue.put_nowait(number)
    [queue.put_nowait(None) for _ in clients]
    await asyncio.gather(*clients)
    return ends


async def main(relent, seconds, rate):
    folder = tempfile.mkdtemp()
    log, seen = f"{folder}/access.log", f"{folder}/seen"
    open(f"{folder}/relent.toml", "w").write(POLICY % (PORT, log, *UP))
    start = lambda port: subprocess.Popen([sys.executable, __file__, "endpoint", str(port), seen])
    endpoints = [start(port) for port in UP]
    proxy = subprocess.Popen([relent, "proxy", "--config", f"{folder}/relent.toml"], stderr=subprocess.PIPE)
    proxy.stderr.readline()
    await asyncio.sleep(1)

    async def killer():
        for turn in range(10_000):
            await asyncio.sleep(2)
            endpoints[turn % 2].send_signal(signal.SIGKILL)
            endpoints[turn % 2].wait()
            await asyncio.sleep(0.3)
            endpoints[turn % 2] = start(UP[turn % 2])

    killing = asyncio.create_task(killer())
    ends = await load(seconds, rate)
    killing.cancel()
    proxy.send_signal(signal.SIGTERM)
    proxy.wait()
    [process.kill() for process in endpoints]
    report(ends, [json.loads(line) for line in open(log)], [line.split() for line in open(seen)])


def report(ends, log, seen):
    kinds = collections.Counter(end for end in ends.values() if end[0] != 200)
    print(f"{len(ends)} requests, {sum(end[0] == 200 for end in ends.values())} answered 200; the others by status and reason: {dict(kinds)}")
    allowed = {"AttemptsExhausted", "BudgetExhausted"}
    lost = [number for number, end in ends.items() if end[0] != 200 and end[1] not in allowed]
    print(f"lost though policy and budget allowed a retry: {len(lost)}")
    arrived = collections.defaultdict(list)
    for number, attempt in seen:
        arrived[number].append(int(attempt))
    doubled = [number for number, attempts in arrived.items() if len(set(attempts)) != len(attempts)]
    print(f"attempt numbers seen twice for one request: {len(doubled)}")
    sparse = wrote = unread = 0
    for line in log:
        attempts = line["attempts"]
        numbers = [attempt["number"] for attempt in attempts]
        sparse += numbers != list(range(1, len(numbers) + 1))
        sent = {attempt["number"] for attempt in attempts if attempt["wrote"]}
        wrote += len(sent)
        there = set(arrived.get(line["path"][1:], []))
        sparse += not there <= sent
        unread += len(sent - there)
    print(f"numbers not dense, or arrived without bytes written: {sparse}")
    print(f"attempts that wrote bytes: {wrote}; read by an endpoint: {len(seen)}; written to one that was killed before it read: {unread}")
    sys.exit(bool(lost or doubled or sparse or wrote != len(seen) + unread))


if sys.argv[1] == "endpoint":
    asyncio.run(endpoint(int(sys.argv[2]), sys.argv[3]))
else:
    asyncio.run(main(sys.argv[1], *(float(x) for x in sys.argv[2:4]) if len(sys.argv) > 3 else (float(sys.argv[2]) if len(sys.argv) > 2 else 60, 500)))
