"""Log lines: folded in a storm, whole and escaped whatever a client says, without secrets, at the level in force."""

import json
import re
import signal
import time

from bodies import simple
from gate import basic

FOLDED = "log:\n  level: debug\n  format: json\n  fold: 1s\n"


def lines(gate, event, since=0):
    return [line for line in map(json.loads, gate.log(since).splitlines()) if line["event"] == event]


def test_storm_is_one_line_and_a_count(make_gate):
    gate = make_gate(FOLDED)
    before = time.monotonic()
    for i in range(400):
        assert gate.ingest(b"no profile").status == 400
    took = time.monotonic() - before
    gate.until(lambda: sum(1 + line.get("suppressed", 0) - ("suppressed" in line) for line in lines(gate, "refused")), 400)
    seen = lines(gate, "refused")
    assert "suppressed" not in seen[0] and any("suppressed" in line for line in seen)
    assert len(seen) <= 2 * (took + 2), "%d lines in %.1f s" % (len(seen), took)
    assert {line["level"] for line in seen} == {"debug"}


def test_nothing_is_lost_at_the_end(make_gate):
    gate = make_gate(FOLDED.replace("1s", "1h"))
    for i in range(5):
        assert gate.ingest(b"no profile").status == 400
    gate.stop()
    assert [line.get("suppressed") for line in lines(gate, "refused")] == [None, 4]


def test_hostile_bytes_stay_inside_of_their_line(make_gate):
    gate = make_gate(FOLDED.replace("1s", "0s"))
    nasty = [b"a\\x00b", b"\x1b[31mred", b"\x7f\xc2\x85\xc2\x9b", b"\xff\xfe\x80", b"x\x0blevel=error", b'"}{"event":"forged', "é€😀".encode() * 100]
    for raw in nasty:
        quoted = b"".join(b"%%%02X" % c for c in raw)
        for agent, name in ((b"x", quoted), (raw, b"x")):  # the second is refused by its head, or taken for what it is
            with gate.wire() as w:
                w.send(b"POST /ingest?name=" + name + b"&format=" + name + b" HTTP/1.1\r\nHost: x\r\nUser-Agent: " + agent
                       + b"\r\nAuthorization: " + basic("x", gate.key)["Authorization"].encode() + b"\r\nContent-Length: 1\r\n\r\nx")
                assert 400 <= w.reply().status < 500
    time.sleep(0.1)
    with open(gate.log_file, "rb") as f:
        said = f.read()
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", said)
    said.decode()  # UTF-8 as a whole
    for line in said.splitlines():
        assert json.loads(line)["level"] != "error" and json.loads(line)["event"] != "forged"
    assert len(lines(gate, "refused")) >= len(nasty)


def test_no_secret_in_the_log(make_gate):
    gate = make_gate("log:\n  level: debug\n")
    wrong = "fg_" + "Q7" * 30
    assert gate.ingest(b"x", key=wrong).status == 401
    assert gate.request("POST", "/ingest?name=a&token=" + wrong, b"x").status == 401
    assert gate.ingest(b"x").status == 400 and gate.read("labels", key=gate.key).status == 403
    gate.stop()
    assert "event=refused" in gate.log()
    for secret in (wrong, gate.key, gate.reader, gate.admin, basic("any", gate.key)["Authorization"].split()[1]):
        assert secret not in gate.log() and secret[8:40] not in gate.log()


def test_level_by_reload(make_gate):
    gate = make_gate()
    assert gate.ingest(b"x").status == 400 and gate.ingest(simple("f", 1).gz()).status == 200
    assert "event=refused" not in gate.log()
    gate.configure("log:\n  level: debug\n")
    gate.process.send_signal(signal.SIGHUP)
    gate.until(lambda: "configuration reloaded" in gate.log(), True)
    assert gate.ingest(b"x").status == 400
    gate.until(lambda: "event=refused" in gate.log(), True)
