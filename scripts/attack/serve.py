"""The review server under stalled, broken and huge requests: it must stay answering, and lose nothing."""

import json
import socket
import subprocess
import time
import urllib.request
from contextlib import suppress

from tool import limited

CAMPAIGN = "review server"


class Server:
    def __init__(self, tool):
        self.process = subprocess.Popen(
            tool.command(["audit", "serve", tool.package(), "--port", "0"]),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=tool.environment,
            preexec_fn=limited,
        )
        self.url = self.process.stdout.readline().decode().strip()
        host, port = self.url.removeprefix("http://").strip("/").split(":")
        self.address = (host, int(port))

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


def requests(r, host):
    """What a browser would never send."""
    head = f"GET / HTTP/1.1\r\nHost: {host}\r\n"
    yield b""
    yield b"\r\n" * r.randrange(1, 4000)
    yield head.encode()[: r.randrange(1, len(head))]
    yield (head + f"X: {'a' * r.choice([100, 20_000, 200_000])}\r\n\r\n").encode()
    yield (head + "A: b\r\n" * r.choice([10, 5000]) + "\r\n").encode()
    yield f"GET /../../../../etc/passwd HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    yield f"GET /crop/%2e%2e%2f%2e%2e%2fkey.json HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    yield b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"
    yield f"POST /verdict HTTP/1.1\r\nHost: {host}\r\nOrigin: http://evil.example\r\nContent-Length: 2\r\n\r\n{{}}".encode()
    yield f"POST /verdict HTTP/1.1\r\nHost: {host}\r\nContent-Length: {r.choice([-1, 10**30, 10**9, 'x'])}\r\n\r\n{{}}".encode()
    yield f"POST /verdict HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n".encode()
    yield f"POST /verdict HTTP/1.1\r\nHost: {host}\r\nContent-Length: 70000\r\n\r\n".encode() + b"{" * 70000
    yield bytes(r.randrange(256) for _ in range(r.randrange(1, 3000)))


def attack(tool):
    server = Server(tool)
    table, stalled = tool.table, []
    if not server.url:
        table.add(CAMPAIGN, "panic", server.process.stderr.read()[-300:])
        return
    try:
        for data in requests(tool.random, server.url.removeprefix("http://").strip("/")):
            answer = server.raw(data, wait=0.3)
            table.add(CAMPAIGN, "panic" if answer.startswith(b"HTTP/1.1 5") else "right error", data[:80])
            if b"root:" in answer:
                table.add(CAMPAIGN, "silent change", "a file from outside the package")
            if tool.random.random() < 0.5:
                with suppress(OSError):
                    s = socket.create_connection(server.address, timeout=1)
                    s.sendall(b"GET / HT")
                    stalled.append(s)
        took = server.answers()
        table.add(CAMPAIGN, "success" if took is not None and took < 5 else "hang", f"answered in {took}")
        if server.process.poll() is not None:
            table.add(CAMPAIGN, "panic", server.process.stderr.read()[-300:])
    finally:
        for s in stalled:
            s.close()
        server.process.kill()
        server.process.wait()
    for log in tool.package().rglob("*.jsonl"):
        for line in log.read_text().splitlines():
            with suppress(ValueError):
                json.loads(line)
                continue
            table.add(CAMPAIGN, "silent change", f"{log.name}: {line[:80]}")
