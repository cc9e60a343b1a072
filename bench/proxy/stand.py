"""A proxy that is looked at from outside: started with a policy file, read through /proc and /metrics, ended with SIGTERM."""
import contextlib, os, re, signal, socket, subprocess, tempfile, time, urllib.request


def wait_for(port, process):
    """Until somebody accepts; an error if the process ends before that."""
    while process.poll() is None:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
    raise SystemExit(f"{process.args[0]} ended with {process.returncode} before it listened on port {port}")


def taken(*ports):
    """Those of the ports where somebody listens already: he would be measured, and not we."""
    found = []
    for port in ports:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            found.append(port)
    return found


class Proxy:
    """`relent proxy` with this file; `{folder}` in it is a folder that goes away at the end."""

    def __init__(self, relent, policy, port, admin=None):
        if busy := taken(port, *([admin] if admin else [])):
            raise SystemExit(f"port {busy[0]} is in use: end what listens there")
        self.folder = tempfile.TemporaryDirectory()
        self.port, self.admin = port, admin
        path = os.path.join(self.folder.name, "relent.toml")
        with open(path, "w") as file:
            file.write(policy.replace("{folder}", self.folder.name))
        self.errors = open(os.path.join(self.folder.name, "stderr"), "w+")
        self.process = subprocess.Popen([relent, "proxy", "--config", path], stderr=self.errors)

    def __enter__(self):
        try:
            wait_for(self.port, self.process)
        except SystemExit:
            self.errors.seek(0)
            raise SystemExit(self.errors.read())
        return self

    def __exit__(self, *_):
        self.end()
        self.errors.close()
        self.folder.cleanup()

    def end(self):
        """Lets it finish; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def megabytes(self, name):
        """VmRSS (now) or VmHWM (its peak), in 1,000,000 bytes: the kernel's "kB" are 1024."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(rf"{name}:\s+(\d+) kB", status.read())[1]) * 1024 / 1e6

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def metric(self, name, label=""):
        """The sum of a metric's lines, of those alone that have the label."""
        page = urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=5).read().decode()
        lines = [line for line in page.splitlines() if re.match(rf"{name}[ {{]", line)]
        if not lines:
            raise SystemExit(f"/metrics has no {name}")
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if label in line)
