"""Both servers under stalled, broken and huge requests: they must stay answering, and lose nothing."""

import json
import socket
import subprocess
import time
import urllib.request
from contextlib import suppress

from tool import limited
from verbs import run


class Server:
    def __init__(self, tool, command, before=()):
        """`before` starts the server's own command."""
        self.process = subprocess.Popen(
            [*map(str, before), *tool.command([*command, "--port", "0"])],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=tool.environment,
            preexec_fn=limited,
        )
        self.url = self.process.stdout.readline().decode().strip()
        self.host, _, self.path = self.url.removeprefix("http://").partition("/")
        name, port = self.host.split(":")
        self.address = (name, int(port))

    def raw(self, data, wait=1.0):
        """Sends bytes; what comes back within the time."""
        with suppress(OSError), socket.create_connection(self.address, timeout=wait) as s:
            with suppress(OSError):
                s.sendall(data)
            with suppress(OSError):
                return s.recv(4096)
        return b""

    def answers(self):
        start = time.monotonic()
        with suppress(OSError), urllib.request.urlopen(self.url, timeout=5) as page:
            page.read()
            return time.monotonic() - start
        return None


def requests(r, host, base):
    """What a browser would never send; `base` ends in a slash."""
    head = f"GET {base} HTTP/1.1\r\nHost: {host}\r\n"
    yield b""
    yield b"\r\n" * r.randrange(1, 4000)
    yield head.encode()[: r.randrange(1, len(head))]
    yield (head + f"X: {'a' * r.choice([100, 20_000, 200_000])}\r\n\r\n").encode()
    yield (head + "A: b\r\n" * r.choice([10, 5000]) + "\r\n").encode()
    for path in (
        "../../../../etc/passwd",
        "crop/%2e%2e%2f%2e%2e%2fkey.json",
        "api/slide/%2e%2e",
        f"api/slide/{r.choice([-1, 1, 10**30])}",
        f"tile/0/{r.choice([-1, 0, 99, 10**20])}/{r.choice([0, -1, 10**9])}_{r.choice([0, 2**63])}.jpg",
        f"crop/0/{r.choice(['nan', 'inf', '-1e300', 'a', 5])}_{r.choice([0, '1e18'])}.jpg",
        "api/reviews/0?reviewer=../../x",
    ):
        yield f"GET {base}{path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    yield f"GET {base} HTTP/1.1\r\nHost: evil.example\r\n\r\n".encode()
    for path in ("verdict", "api/review", "api/undo"):
        post = f"POST {base}{path} HTTP/1.1\r\nHost: {host}\r\n"
        yield f"{post}Origin: http://evil.example\r\nContent-Length: 2\r\n\r\n{{}}".encode()
        yield f"{post}Content-Length: {r.choice([-1, 10**30, 10**9, 'x'])}\r\n\r\n{{}}".encode()
        yield f"{post}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n".encode()
        yield f"{post}Content-Length: 70000\r\n\r\n".encode() + b"{" * 70000
        sent = {
            "reviewer": r.choice(["ab", "../ab", "", "a\n{}", "x" * 300]),
            "slide": r.choice([0, 7, -1]),
            "key": r.choice(["", "no such", "../../key"]),
            "x": r.choice([10, -5, 1e300]),
            "y": 20,
            "verdict": r.choice(["figure", "nonsense", None]),
            "added": r.choice([True, False]),
        }
        body = json.dumps(sent)
        yield f"{post}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    yield bytes(r.randrange(256) for _ in range(r.randrange(1, 3000)))


def attack(tool):
    """One server after the other."""
    servers = [
        ("review server", ["audit", "serve", tool.package()], tool.package()),
        ("viewer", ["view", run(tool)], run(tool)),
    ]
    campaign, command, folder = tool.turn("serve", servers)
    before = {p for p in tool.base.rglob("*") if folder not in p.parents}
    trouble(tool, campaign, Server(tool, command))
    outside = {p for p in tool.base.rglob("*") if folder not in p.parents} - before
    if outside:
        tool.table.add(campaign, "silent change", f"written outside: {sorted(outside)[:3]}")
    for log in folder.rglob("*.jsonl"):
        for line in log.read_text().splitlines():
            with suppress(ValueError):
                json.loads(line)
                continue
            tool.table.add(campaign, "silent change", f"{log.name}: {line[:80]}")


def trouble(tool, campaign, server):
    table, stalled = tool.table, []
    if not server.url:
        table.add(campaign, "panic", server.process.stderr.read()[-300:])
        return
    try:
        for data in requests(tool.random, server.host, "/" + server.path):
            answer = server.raw(data, wait=0.3)
            table.add(campaign, "panic" if answer.startswith(b"HTTP/1.1 5") else "right error", data[:80])
            if b"root:" in answer:
                table.add(campaign, "silent change", "a file from outside the package")
            if tool.random.random() < 0.5:
                with suppress(OSError):
                    s = socket.create_connection(server.address, timeout=1)
                    s.sendall(b"GET / HT")
                    stalled.append(s)
        took = server.answers()
        table.add(campaign, "success" if took is not None and took < 5 else "hang", f"answered in {took}")
        if server.process.poll() is not None:
            table.add(campaign, "panic", server.process.stderr.read()[-300:])
    finally:
        for s in stalled:
            s.close()
        server.process.kill()
        server.process.wait()
