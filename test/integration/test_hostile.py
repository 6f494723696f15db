"""
Every row of hostile_table.py over a raw socket: its exact status, what becomes of the connection, and the proof that nothing behind
it was read as a second request. Behind each row stands an upload with a good key. Where the connection is kept it is the next request and
must be answered; where it is not, it must never arrive: the counters of requests are compared exactly, and at the end nothing called
`smuggled` is in the store.
"""

import json
import time

import pytest

from gate import Gate
from hostile_table import BODY, TABLE, sized


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """A gateway for all rows: a request that hurt it would be seen by the rows behind."""
    gate = Gate(tmp_path_factory.mktemp("hostile"), "timeouts: { head: 5s, body: 5s }\n").start()
    yield gate
    services = [s["service"] for s in gate.get("services", **{"from": "now-1h"})["services"]]
    assert "behind" in services and "smuggled" not in services
    m = gate.metrics()
    bad = {k: v for k, v in m.items() if k.startswith("flamegate_requests_total") and 'code="5' in k and 'code="501"' not in k and 'code="505"' not in k}
    assert not bad and not [k for k in m if 'code="408"' in k]
    gate.stop()


def requests(gate):
    """Requests received so far, the scrapes not counted."""
    m = gate.metrics()
    scrapes = gate.count("flamegate_requests_total", m, route="metrics") + 1
    return int(m["flamegate_requests_received_total"] - scrapes)


def ask(gate, wire, raw, status, pieces):
    """Sends the pieces; the answer's headers. What is sent to somebody who has stopped reading may fail, the answer is there all the same."""
    for piece in pieces:
        try:
            wire.send(piece)
        except (BrokenPipeError, ConnectionResetError):
            break
    if raw.startswith(b"HEAD"):
        got, headers = wire.head()
        assert got == status
        return headers
    reply = wire.reply()
    assert reply.status == status or (isinstance(status, tuple) and reply.status in status), reply
    if reply.status >= 400:
        assert reply.headers["content-type"] == "application/json"
        assert set(json.loads(reply.body)) >= {"code", "message"}
    return reply.headers


def exchange(gate, raw, status, state, cut):
    """One row with a request behind it, in the pieces that `cut` makes of them."""
    behind = sized(target="/ingest?name=%s" % ("behind" if state == "kept" else "smuggled"))
    raw, behind = (b.replace(b"@KEY", gate.key.encode()).replace(b"@READER", gate.reader.encode()) for b in (raw, behind))
    before = requests(gate)
    with gate.wire(5) as wire:
        headers = ask(gate, wire, raw, status, cut(raw + behind))
        if state == "kept":
            assert "connection" not in headers
            assert wire.reply().status == 200
            assert wire.send(sized(target="/healthz", method="GET")).reply().status == 200  # it still is a good connection
        else:
            assert headers.get("connection") == "close"
            if state == "early":
                wire.send(raw.split(b"\r\n\r\n", 1)[1] + behind)
            assert wire.closed(2), "something behind the answer"
    gate.until(lambda: requests(gate) - before, 3 if state == "kept" else 1, within=1)


def test_the_table_is_large_enough():
    assert len(TABLE) >= 150 and len({name for name, *_ in TABLE}) == len(TABLE)


@pytest.mark.parametrize("name, raw, status, state", TABLE, ids=[row[0] for row in TABLE])
def test_row(one, name, raw, status, state):
    step = 1 if len(raw) < 2000 else 1500
    if state == "early":
        exchange(one, raw, status, "kept", lambda b: [b])
        exchange(one, raw, status, "early", lambda b: [b.split(b"\r\n\r\n", 1)[0] + b"\r\n\r\n"])
    else:
        exchange(one, raw, status, state, lambda b: [b])
        exchange(one, raw, status, state, lambda b: [b[i : i + step] for i in range(0, len(b), step)])


def test_what_follows_an_error_is_not_read(one):
    """Ten requests in one packet, the fourth is broken: four answers, and the end."""
    good, broken = sized(target="/ingest?name=behind"), sized("Content-Length: 12")
    before = requests(one)
    with one.wire() as wire:
        wire.send((good * 3 + broken + good * 6).replace(b"@KEY", one.key.encode()))
        assert [wire.reply().status for _ in range(4)] == [200, 200, 200, 400]
        assert wire.closed()
    assert requests(one) - before == 4


def test_empty_lines_alone_are_no_request(one):
    before = requests(one)
    with one.wire() as wire:
        wire.send(b"\r\n" * 4)
        time.sleep(0.1)
    with one.wire() as wire:  # some clients put one behind a body
        wire.send(sized(target="/ingest?name=behind").replace(b"@KEY", one.key.encode()))
        assert wire.reply().status == 200
        wire.send(b"\r\n")
        time.sleep(0.1)
    time.sleep(0.1)
    assert requests(one) - before == 1
    assert one.settled() == {}
    assert BODY in sized()
