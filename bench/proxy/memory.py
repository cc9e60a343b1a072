#!/usr/bin/env python3
"""What `relent proxy` holds: resident memory at 50 and at 1000 keep-alive connections, and over 1,000,000 requests with 5 % 503s.

usage: memory.py RELENT UPSTREAM [held|flat]     (needs wrk and h2load; UPSTREAM takes --ports A,B --fail-every N --mode raw)
"""
import re, subprocess, sys, threading

from stand import Proxy, taken, wait_for

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
# Megabytes; the last is what a million requests may add once the first hundred thousand have warmed everything up.
BARS = {50: 8, 1000: 70, "flat": 0.5}


def with_proxy(relent, upstream, fail_every, work):
    if busy := taken(*UP):
        raise SystemExit(f"port {busy[0]} is in use: end what listens there")
    ports = ",".join(map(str, UP))
    up = subprocess.Popen([upstream, "--ports", ports, "--fail-every", str(fail_every), "--mode", "raw"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        [wait_for(port, up) for port in UP]
        with Proxy(relent, POLICY, PORT) as proxy:
            return work(proxy)
    finally:
        up.kill()
        up.wait()


def held(connections):
    """Looks while the connections are there, not after they have gone."""

    def work(proxy):
        sizes, over = [], threading.Event()

        def watch():
            while not over.wait(0.25):
                sizes.append(proxy.megabytes("VmRSS"))

        watching = threading.Thread(target=watch)
        start = proxy.megabytes("VmRSS")
        watching.start()
        out = subprocess.run(["wrk", "-t1", f"-c{connections}", "-d6s", f"http://127.0.0.1:{PORT}/some/path?x=1"],
                             check=True, capture_output=True, text=True).stdout
        over.set()
        watching.join()
        if troubles := re.findall(r"(?:Socket errors|Non-2xx).*", out):
            print(f"! {troubles}", file=sys.stderr)
        peak = proxy.megabytes("VmHWM")
        middle = sorted(sizes)[len(sizes) // 2]
        print(f"| {connections} connections | {start:.1f} | {middle:.1f} | {peak:.1f} | {BARS[connections]} |", flush=True)
        return peak <= BARS[connections]

    return work


def flat(proxy):
    sizes = []
    for hundred in range(1, 11):
        out = subprocess.run(["h2load", "--h1", "-t1", "-n100000", "-c50", f"http://127.0.0.1:{PORT}/"],
                             check=True, capture_output=True, text=True).stdout
        sizes.append(proxy.megabytes("VmRSS"))
        good = re.search(r"(\d+) 2xx", out)[1]
        print(f"| {hundred * 100_000:,} | {good} | {sizes[-1]:.2f} | {proxy.megabytes('VmHWM'):.2f} |", flush=True)
    grown = sizes[-1] - sizes[0]
    print(f"\nfrom 100,000 to 1,000,000 requests: {grown:+.2f} MB; slope {slope(sizes):+.3f} MB for each 100,000 (at most {BARS['flat']} MB in all)")
    return grown <= BARS["flat"]


def slope(sizes):
    """Of the straight line that fits best."""
    middle, mean = (len(sizes) - 1) / 2, sum(sizes) / len(sizes)
    return sum((place - middle) * (size - mean) for place, size in enumerate(sizes)) / sum((place - middle) ** 2 for place in range(len(sizes)))


def main(relent, upstream, part="both"):
    good = True
    if part in ("both", "held"):
        print("| MB | at the start | VmRSS, median | VmHWM, peak | bar |\n|---|--:|--:|--:|--:|")
        for connections in (50, 1000):
            good &= with_proxy(relent, upstream, 0, held(connections))
    if part in ("both", "flat"):
        print("\n| requests, 5 % 503 | 2xx of the last 100,000 | VmRSS, MB | VmHWM, MB |\n|--:|--:|--:|--:|")
        good &= with_proxy(relent, upstream, 20, flat)
    sys.exit(not good)


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 4 or sys.argv[3:] not in ([], ["held"], ["flat"]):
        sys.exit(__doc__)
    main(*sys.argv[1:])
