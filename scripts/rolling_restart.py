"""Restarts two servers of a model one after the other, under load and behind nginx, and counts what is lost.

    rolling_restart.py process|container|systemd [--amkc ./amkc] [--model DIR] [--clients N] [--rounds N] [--root DIR]

Both decode on the reference VM, and nginx has the lines of deploy/nginx.conf. A server is a process; or a container of
deploy/Dockerfile, by podman, which has the base image or can fetch it; or an instance of deploy/amkc@.service, under a
systemd that systemd-nspawn boots in --root, a Debian with systemd and curl. The last two need root. Clients try again
where a connection is refused, and nowhere else. Prints what came of it as JSON, and exits with code 1 if a request
failed or if a text differs from that of the same request alone.
"""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEY = "secret"
FIELDS = ['"seed": 1', '"temperature": 0', '"seed": 2, "n": 2', '"temperature": 0.5, "seed": 3, "stop": ["return"]']


def questions():
    """Requests of several kinds, whole and in streams: (path, body)."""
    for i, fields in enumerate(FIELDS):
        for stream in ("false", "true"):
            yield "/v1/completions", f'{{"prompt": "def f{i}(", "max_tokens": 24, "stream": {stream}, {fields}}}'
            yield "/v1/chat/completions", (f'{{"messages": [{{"role": "user", "content": "add {i}"}}], '
                                           f'"max_tokens": 24, "stream": {stream}, {fields}}}')


def text_of(body, stream):
    """The texts of an answer by their choices, with how each ended."""
    if not stream:
        return sorted((c["index"], c.get("text") or c["message"]["content"], c["finish_reason"])
                      for c in json.loads(body)["choices"])
    if not body.endswith("data: [DONE]\n\n"):
        raise ValueError(f"the stream is cut: {body[-200:]!r}")
    texts, ends = {}, {}
    for line in body.splitlines():
        if line.startswith("data: {"):
            for c in json.loads(line[6:])["choices"]:
                said = c.get("text") or c.get("delta", {}).get("content") or ""
                texts[c["index"]] = texts.get(c["index"], "") + said
                ends[c["index"]] = c["finish_reason"]
    return sorted((i, texts[i], ends[i]) for i in texts)


def ask(port, path, body=None):
    """A request on a connection of its own: (status, body, seconds to the first byte and to the last one)."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    begun = time.monotonic()
    c.request("POST" if body else "GET", path, body,
              {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", "Connection": "close"})
    r = c.getresponse()
    first = time.monotonic() - begun
    text = r.read().decode()
    c.close()
    return r.status, text, first, time.monotonic() - begun


class Load:
    """Clients, each of which asks one thing after the other until it is told to stop."""

    def __init__(self, port, want, clients):
        self.port, self.want, self.stop = port, want, threading.Event()
        self.done, self.failed, self.refused, self.lock = [], [], 0, threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(clients)]
        for t in self.threads:
            t.start()

    def run(self, number):
        rng = random.Random(number)
        while not self.stop.is_set():
            (path, body), want = rng.choice(self.want)
            try:
                status, text, first, whole = ask(self.port, path, body)
                wrong = None
                if status != 200:
                    wrong = f"status {status}: {text}"
                elif text_of(text, '"stream": true' in body) != want:
                    wrong = f"another text: {text}"
            except ConnectionRefusedError:
                with self.lock:
                    self.refused += 1
                time.sleep(0.05)
                continue
            except (OSError, http.client.HTTPException, ValueError) as e:
                wrong = repr(e)
            with self.lock:
                if wrong:
                    self.failed.append(f"{path} {body}: {wrong}")
                else:
                    self.done.append((first, whole))

    def end(self):
        self.stop.set()
        for t in self.threads:
            t.join()


class Watch:
    """What /health of a server says, every 20 ms: each status once, with when it began."""

    def __init__(self, port):
        self.port, self.seen, self.stop = port, [], threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stop.wait(0.02):
            try:
                status, body, _, _ = ask(self.port, "/health")
                said = f"{status} {json.loads(body)['status']}"
            except (OSError, http.client.HTTPException):
                said = "no connection"
            if not self.seen or self.seen[-1] != said:
                self.seen.append(said)

    def end(self):
        self.stop.set()
        self.thread.join()


def ready(port, seconds=120):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if ask(port, "/health")[0] == 200:
                return
        time.sleep(0.05)
    raise SystemExit(f"the server at port {port} is not ready after {seconds} s")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def sh(*args, **more):
    done = subprocess.run(args, text=True, capture_output=True, check=False, **more)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, args))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


class Process:
    """A server as a process."""

    def __init__(self, o, _work, port):
        self.command = [o.amkc, "serve", o.model, "--device", "ref", "--port", str(port), "--grace", "60", "-q"]
        self.port = port
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, env=os.environ | {"AMKC_API_KEY": KEY},
                                        stdout=subprocess.DEVNULL)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(120)
        if code:
            raise SystemExit(f"{self.command}: exit code {code}")

    def restart(self):
        self.end()
        self.start()
        ready(self.port)

    def facts(self):
        return {}


class Container:
    """A server in a container of an image in which amkc is the executable, and the model is next to it."""

    def __init__(self, o, work, port):
        self.name, self.port = f"amkc-{port}", port
        context = work / "image"
        if not context.exists():
            shutil.copytree(o.model, context)
            shutil.copy(o.amkc, context / "amkc")
            sh("podman", *o.podman, "build", "--format", "docker", "--pull=missing", "-f", ROOT / "deploy/Dockerfile",
               "--build-arg", "NAME=amkc", "-t", "amkc-rolling", context)
        sh("podman", *o.podman, "run", "-d", "--name", self.name, "--network", "host", "--read-only",
           "--cap-drop", "all", "--security-opt", "no-new-privileges", "--ulimit", "nofile=20000:20000",
           "--ulimit", "nproc=4096:4096", "-e", f"AMKC_API_KEY={KEY}", "amkc-rolling", "/model", "--device", "ref",
           "--port", str(port), "--grace", "60")

    def restart(self):
        sh("podman", "stop", "-t", "90", self.name)
        code = sh("podman", "inspect", "--format", "{{.State.ExitCode}}", self.name)
        if code != "0":
            raise SystemExit(f"{self.name}: exit code {code}: {sh('podman', 'logs', self.name)}")
        sh("podman", "start", self.name)
        ready(self.port)

    def facts(self):
        status = pathlib.Path("/proc", sh("podman", "inspect", "--format", "{{.State.Pid}}", self.name), "status")
        wanted = ("Uid", "CapEff", "NoNewPrivs", "VmRSS", "Threads")
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        return {k: " ".join(lines[k].split()) for k in wanted} | {
            "image": sh("podman", "image", "inspect", "--format", "{{.Size}}", "amkc-rolling")}

    def end(self):
        sh("podman", "rm", "-f", "-t", "90", self.name)


class Unit:
    """An instance of the unit, under a systemd of its own."""

    booted = None

    def __init__(self, o, _work, port):
        self.name, self.port = f"amkc@{port}", port
        root = pathlib.Path(o.root)
        home = root / f"srv/amkc/{port}"
        home.mkdir(parents=True, exist_ok=True)
        if not Unit.booted:
            shutil.copytree(o.model, root / "srv/model", dirs_exist_ok=True)
            shutil.copy(o.amkc, root / "srv/amkc/amkc")
        (home / "launcher").unlink(missing_ok=True)
        (home / "launcher").symlink_to("../amkc")
        (root / "etc/amkc").mkdir(exist_ok=True)
        settings = root / f"etc/amkc/{port}.env"
        settings.write_text(f'PORT={port}\nFLAGS="/srv/model --device ref"\nAMKC_API_KEY={KEY}\n')
        settings.chmod(0o600)
        shutil.copy(ROOT / "deploy/amkc@.service", root / "etc/systemd/system/amkc@.service")
        if not Unit.booted:
            boot = "mount -t tmpfs tmpfs /run && exec systemd-nspawn -q --register=no --keep-unit --directory=$0 --boot"
            Unit.booted = subprocess.Popen(["unshare", "-m", "sh", "-c", boot, str(root)], stdin=subprocess.DEVNULL,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for _ in range(100):
                time.sleep(0.2)
                with contextlib.suppress(SystemExit, IndexError):
                    self.systemctl("is-system-running", "--wait")
                    break
        self.systemctl("start", self.name)

    @staticmethod
    def halt():
        if Unit.booted:
            Unit.booted.terminate()
            Unit.booted.wait(60)

    def inside(self, *args):
        """Runs a command in the namespaces of the systemd that was booted: the child of nspawn's process."""
        first = sh("pgrep", "-P", str(Unit.booted.pid)).split()[0]
        return sh("nsenter", "-t", first, "-m", "-p", "-u", "-i", *args)

    def systemctl(self, *args):
        return self.inside("systemctl", *args)

    def restart(self):
        self.systemctl("restart", self.name)

    def kill(self):
        """As a fault would end it: systemd starts it again."""
        self.systemctl("kill", "--signal=KILL", self.name)
        for _ in range(300):
            time.sleep(0.2)
            shown = self.systemctl("show", self.name, "-p", "NRestarts,ActiveState").split()
            if sorted(shown) == ["ActiveState=active", "NRestarts=1"]:
                return
        raise SystemExit(f"{self.name}: {shown}, and it was killed a minute ago")

    def facts(self):
        shown = self.systemctl("show", self.name, "-p", "NRestarts,ActiveState,ExecMainPID,LimitNOFILE,LimitMEMLOCK")
        security = self.inside("systemd-analyze", "security", "--no-pager", self.name).splitlines()[-1]
        return dict(line.split("=", 1) for line in shown.splitlines()) | {"security": security.strip("→ ")}

    def end(self):
        self.systemctl("stop", self.name)
        result = self.systemctl("show", self.name, "-p", "Result,ExecMainStatus").split()
        if result != ["Result=success", "ExecMainStatus=0"]:
            raise SystemExit(f"{self.name}: {result}")


def nginx(work, port, backends):
    conf = (ROOT / "deploy/nginx.conf").read_text().replace("listen 8080", f"listen 127.0.0.1:{port}")
    for old, new in zip(("127.0.0.1:8081", "127.0.0.1:8082"), backends):
        conf = conf.replace(old, f"127.0.0.1:{new}")
    paths = "".join(f"{kind}_temp_path {work}/{kind};\n" for kind in
                    ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    file = work / "nginx.conf"
    file.write_text(f"daemon off;\npid {work}/pid;\nerror_log {work}/error.log;\nevents {{}}\n"
                    f"http {{\naccess_log off;\n{paths}{conf}}}\n")
    return subprocess.Popen(["nginx", "-c", str(file), "-e", str(work / "error.log")])


def percentile(values, p):
    return round(1000 * sorted(values)[min(len(values) - 1, int(p * len(values)))])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("kind", choices=["process", "container", "systemd"])
    p.add_argument("--amkc", default=str(ROOT / "amkc"))
    p.add_argument("--model", default=str(ROOT / "testdata/models/pycoder-5m"))
    p.add_argument("--clients", type=int, default=6)
    p.add_argument("--rounds", type=int, default=2, help="restarts of each server")
    p.add_argument("--root", help="of systemd: a Debian with systemd and curl")
    p.add_argument("--podman", nargs="*", default=[], help="options of podman, as --runtime=runc")
    o = p.parse_args()
    kind = {"process": Process, "container": Container, "systemd": Unit}[o.kind]
    result = {"kind": o.kind, "clients": o.clients, "restarts": []}
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.callback(Unit.halt)
        ports, servers, watches = [free_port(), free_port()], [], []
        for port in ports:
            servers.append(kind(o, work, port))
            stack.callback(servers[-1].end)
            ready(port)
            watches.append(Watch(port))
            stack.callback(watches[-1].end)
        front = free_port()
        proxy = nginx(work, front, ports)
        stack.callback(proxy.terminate)
        ready(front)
        want = []
        for path, body in questions():
            status, text, _, _ = ask(ports[0], path, body)
            if status != 200:
                raise SystemExit(f"{path} {body}: status {status}: {text}")
            want.append(((path, body), text_of(text, '"stream": true' in body)))
        load = Load(front, want, o.clients)
        try:
            for _ in range(o.rounds):
                for server in servers:
                    time.sleep(2)
                    before, begun = len(load.done), time.monotonic()
                    server.restart()
                    result["restarts"].append({"seconds": round(time.monotonic() - begun, 2),
                                               "answered_meanwhile": len(load.done) - before})
            time.sleep(2)
        finally:
            load.end()
        if o.kind == "systemd":
            servers[0].kill()
            status, text, _, _ = ask(front, *want[0][0])
            result["after_kill"] = [status, text_of(text, False) == want[0][1]]
        for w in watches:
            w.end()
        result |= {"health": [w.seen for w in watches], "requests": len(load.done) + len(load.failed),
                   "failed": len(load.failed), "refused_connections": load.refused,
                   "first_byte_ms": [percentile([d[0] for d in load.done], q) for q in (0.5, 0.99)],
                   "whole_ms": [percentile([d[1] for d in load.done], q) for q in (0.5, 0.99)],
                   "facts": servers[0].facts()}
    print(json.dumps(result, indent=1))
    for failure in load.failed[:5]:
        print(failure, file=sys.stderr)
    return 1 if load.failed or not load.done else 0


if __name__ == "__main__":
    sys.exit(main())
