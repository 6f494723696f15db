#!/usr/bin/env python3
"""Slow clients of every kind, many at once, on one thread: when was each cut? Used by bench/run.sh and test/integration/test_slow.py.

usage: slow.py HOST:PORT N EVERY DEAF-TARGET KIND=SECONDS,...   one line of JSON; SECONDS is the timer that must cut the kind
"""
import json
import resource
import select
import socket
import sys
import time

HEAD = b"POST /ingest?name=slow HTTP/1.1\r\nHost: x\r\n%s"
CHUNKED = HEAD % b"%sTransfer-Encoding: chunked\r\n\r\n"
# What is sent at once, and what each drop is.
KINDS = {
    "silent": (b"", b""),
    "head": (b"POST /in", b"x"),
    "header lines": (HEAD % b"%s", b"X: y\r\n"),
    "empty lines": (b"", b"\r\n"),
    "body": (HEAD % b"%sContent-Length: 9999\r\n\r\n", b"a"),
    "stuck body": (HEAD % b"%sContent-Length: 9999\r\n\r\nmain;", b""),
    "chunks": (CHUNKED, b"1\r\na\r\n"),
    "extension": (CHUNKED + b"5;a", b"a"),
    "trailers": (CHUNKED + b"5\r\na b 1\r\n0\r\n", b"X: y\r\n"),
    "deaf": (b"GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n", b""),
}
DEAF_AT_ONCE = 8  # answers that are being made: more would be refused, and a refusal is no large answer


class Slow:
    def __init__(self, kind, address, first):
        self.kind, self.drop, self.cut, self.answer = kind, KINDS[kind][1], None, b""
        self.socket = socket.socket()
        if kind == "deaf":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(address)
        self.start = self.next = time.monotonic()
        self.socket.setblocking(False)
        if first:
            self.socket.send(first)

    def deaf_answers(self):
        """Whether its answer has begun; looked at, not read."""
        try:
            return self.socket.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 200"
        except BlockingIOError:
            return False


def watch(poll, clients, now):
    """One round: who was cut. Who is deaf never reads, and sees a reset all the same."""
    for fd, event in poll.poll(0.02):
        c = clients[fd]
        if c.kind != "deaf":
            try:
                data = c.socket.recv(4096)
            except OSError:
                data = b""
            c.answer += data
            if data:
                continue
        elif not event & (select.EPOLLERR | select.EPOLLHUP):
            continue
        c.cut = now - c.start
        poll.unregister(fd)
        c.socket.close()
        del clients[fd]


def drip(clients, now, every):
    """The drops that are due."""
    for c in clients.values():
        if c.drop and now >= c.next + every:
            c.next = now
            try:
                c.socket.send(c.drop)
            except OSError:
                pass  # its end is about to be seen


def run(address, n, every, kinds, deaf_target="/", headers=b"", longest=60):
    """n of each kind; all of them when they have been cut, or the time is over."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    poll, clients, every_one = select.epoll(), {}, []
    waiting = [kind for _ in range(n) for kind in kinds]
    asked = []
    round_at = 0
    end = time.monotonic() + longest
    while (waiting or clients) and time.monotonic() < end:
        asked = [c for c in asked if c.cut is None and not c.deaf_answers()]
        later = []
        for kind in waiting[:400]:
            if kind == "deaf" and len(asked) >= DEAF_AT_ONCE:
                later.append(kind)
                continue
            first = KINDS[kind][0]
            c = Slow(kind, address, first % ((deaf_target.encode(), headers) if kind == "deaf" else headers) if b"%s" in first else first)
            if kind == "deaf":
                asked.append(c)
            clients[c.socket.fileno()] = c
            every_one.append(c)
            poll.register(c.socket.fileno(), select.EPOLLIN if kind != "deaf" else 0)
        waiting = waiting[400:] + later
        watch(poll, clients, time.monotonic())
        if time.monotonic() >= round_at:  # looking through thousands costs time that the others on this core need
            round_at = time.monotonic() + every / 10
            drip(clients, round_at, every)
    for c in clients.values():
        c.socket.close()
    return every_one


def summary(clients, timers):
    """Per kind: how many, cut, early, late, answered, and the first and last cut. A deaf one is looked at once per period: it may take two."""
    out = {}
    for kind, seconds in timers.items():
        mine = [c for c in clients if c.kind == kind]
        cuts = [c.cut for c in mine if c.cut is not None]
        most = seconds * (2 if kind == "deaf" else 1) + 5
        out[kind] = {"n": len(mine), "cut": len(cuts), "early": sum(c < seconds - 0.05 for c in cuts), "late": sum(c > most for c in cuts),
                     "answered": sum(bool(c.answer) for c in mine), "first": round(min(cuts, default=0), 2), "last": round(max(cuts, default=0), 2)}
    return out


def main():
    host, port = sys.argv[1].rsplit(":", 1)
    timers = {kind: float(seconds) for kind, seconds in (word.split("=") for word in sys.argv[5].split(","))}
    clients = run((host, int(port)), int(sys.argv[2]), float(sys.argv[3]), timers, sys.argv[4], longest=75)
    print(json.dumps({"label": "slow", "kinds": summary(clients, timers)}))


if __name__ == "__main__":
    main()
