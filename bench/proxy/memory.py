#!/usr/bin/env python3
"""What `relent proxy` holds: resident memory at 50 and at 1000 keep-alive connections, and over 1,000,000 requests with 5 % 503s.

usage: memory.py RELENT UPSTREAM     (needs wrk and h2load; UPSTREAM takes --ports A,B --fail-every N --mode raw)
"""
import os, re, signal, socket, subprocess, sys, tempfile, time

RELENT, UPSTREAM = sys.argv[1:3]
PORT, UP = 8021, (9121, 9122)
POLICY = """version = 1
[proxy]
listen = "127.0.0.1:%d"
workers = 1
access_log = "none"
[policy.p]
backoff = { base = "1ms", cap = "2ms" }
budget = { ratio = 0.25 }
[upstream.u]
endpoints = ["http://127.0.0.1:%d", "http://127.0.0.1:%d"]
[[route]]
upstream = "u"
policy = "p"
""" % (PORT, *UP)


def wait_for(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nobody listens on {port}")


def kilobytes(pid, name):
    return int(re.search(rf"{name}:\s+(\d+) kB", open(f"/proc/{pid}/status").read())[1])


def with_proxy(fail_every, work):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "relent.toml")
        open(path, "w").write(POLICY)
        up = subprocess.Popen([UPSTREAM, "--ports", ",".join(map(str, UP)), "--fail-every", str(fail_every), "--mode", "raw"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        proxy = subprocess.Popen([RELENT, "proxy", "--config", path], stderr=subprocess.DEVNULL)
        try:
            [wait_for(port) for port in (*UP, PORT)]
            work(proxy.pid)
        finally:
            for process in (proxy, up):
                process.send_signal(signal.SIGKILL)
                process.wait()


def held(connections):
    def work(pid):
        subprocess.run(["wrk", "-t1", f"-c{connections}", "-d5s", f"http://127.0.0.1:{PORT}/some/path?x=1"],
                       check=True, stdout=subprocess.DEVNULL)
        print(f"| {connections} keep-alive connections | {kilobytes(pid, 'VmHWM') / 1000:.1f} |", flush=True)
    with_proxy(0, work)


def flat(pid):
    for hundred in range(1, 11):
        out = subprocess.run(["h2load", "--h1", "-t1", "-n100000", "-c50", f"http://127.0.0.1:{PORT}/"],
                             check=True, capture_output=True, text=True).stdout
        ok = re.search(r"(\d+) 2xx", out)[1]
        print(f"| {hundred}00,000 requests, 5 % 503 ({ok} of the last 100,000 answered 2xx) | {kilobytes(pid, 'VmRSS') / 1000:.1f} |", flush=True)


print("| | MB |\n|---|--:|")
held(50)
held(1000)
with_proxy(20, flat)
