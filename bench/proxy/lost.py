#!/usr/bin/env python3
"""Nothing is lost that policy and budget allowed to save: two endpoints that answer 10 % 503, one of them killed every 2 s and
started again, idempotent requests through `relent proxy`. What the clients saw, what the access log says and what the endpoints
read are held against each other (ledger.py).

usage: lost.py RELENT [SECONDS [REQUESTS_PER_SECOND]]     (60 and 500)
"""
import asyncio, json, os, random, re, subprocess, sys, tempfile, time

import ledger
from stand import Proxy, taken

PORT, UP = 8041, (9141, 9142)
ATTEMPTS, RATIO, WINDOW, RESERVE = 4, 0.25, 10, 50
POLICY = f"""version = 1
[proxy]
listen = "127.0.0.1:{PORT}"
outcome_header = true
access_log = "{{folder}}/access.log"
[policy.p]
attempts = {ATTEMPTS}
backoff = {{ base = "5ms", cap = "50ms" }}
attempt_timeout = "1s"
deadline = "5s"
budget = {{ ratio = {RATIO}, window = "{WINDOW}s", reserve = {RESERVE} }}
[upstream.u]
endpoints = ["http://127.0.0.1:{UP[0]}", "http://127.0.0.1:{UP[1]}"]
[[route]]
upstream = "u"
policy = "p"
"""
EVERY, DOWN = 2.0, 0.3
CLIENTS = 64


async def endpoint(port, seen):
    """One endpoint: writes down every head that it has read, then answers."""
    out = open(seen, "a", buffering=1)

    async def serve(reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                number = re.search(r"(?i)x-envoy-attempt-count: (\d+)", head)
                out.write(f"{re.search(r'GET /(.*?) ', head)[1]} {number[1] if number else 0} {port}\n")
                status, text = ("503 Busy", "busy") if random.random() < 0.1 else ("200 OK", "done")
                writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 4\r\n\r\n{text}".encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


async def ask(reader, writer, request):
    """What a request came to: status and stop reason."""
    writer.write(f"GET /{request} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    await reader.readexactly(int(re.search(r"(?i)content-length: (\d+)", head)[1]))
    outcome = re.search(r"(?i)relent-outcome: stop=(\w+)", head)
    return int(head[9:12]), outcome[1] if outcome else "no relent-outcome"


async def load(seconds, rate):
    """Requests at a steady rate; what each came to."""
    ends, queue = {}, asyncio.Queue()

    async def client():
        reader = writer = None
        while (request := await queue.get()) is not None:
            try:
                if writer is None:
                    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
                ends[request] = await ask(reader, writer, request)
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                ends[request], writer = (0, type(error).__name__), None

    clients = [asyncio.create_task(client()) for _ in range(CLIENTS)]
    began = time.monotonic()
    for number in range(int(seconds * rate)):
        await asyncio.sleep(max(0, began + number / rate - time.monotonic()))
        queue.put_nowait(number)
    for _ in clients:
        queue.put_nowait(None)
    await asyncio.gather(*clients)
    return ends


async def kill_and_restart(endpoints, start, kills):
    """Every two seconds the other one, with SIGKILL; when, and which, is written down."""
    began, turn = time.monotonic(), 0
    while True:
        turn += 1
        await asyncio.sleep(max(0, began + turn * EVERY - time.monotonic()))
        place = turn % 2
        kills.append((time.time(), UP[place]))
        endpoints[place].kill()
        endpoints[place].wait()
        await asyncio.sleep(DOWN)
        endpoints[place] = start(UP[place])


async def run(relent, seconds, rate):
    if busy := taken(*UP):
        raise SystemExit(f"port {busy[0]} is in use: end what listens there")
    with tempfile.TemporaryDirectory() as folder, Proxy(relent, POLICY, PORT) as proxy:
        seen = os.path.join(folder, "seen")

        def start(port):
            return subprocess.Popen([sys.executable, __file__, "endpoint", str(port), seen])

        endpoints, kills = [start(port) for port in UP], []
        try:
            while len(taken(*UP)) < 2:
                await asyncio.sleep(0.05)
            killing = asyncio.create_task(kill_and_restart(endpoints, start, kills))
            ends = await load(seconds, rate)
            killing.cancel()
            code = proxy.end()
        finally:
            for process in endpoints:
                process.kill()
                process.wait()
        with open(os.path.join(proxy.folder.name, "access.log")) as log, open(seen) as read:
            lines = [json.loads(line) for line in log]
            arrived = [tuple(map(int, line.split())) for line in read]
    print(f"{len(kills)} kills; the proxy ended with {code}")
    return ledger.report(ends, lines, arrived, kills, ledger.Policy(ATTEMPTS, RATIO, WINDOW)) and code == 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["endpoint"]:
        asyncio.run(endpoint(int(sys.argv[2]), sys.argv[3]))
    elif not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    else:
        seconds, rate = [float(word) for word in sys.argv[2:]] + [60, 500][len(sys.argv) - 2 :]
        sys.exit(not asyncio.run(run(sys.argv[1], seconds, rate)))
