"""Counting once: an upload whose answer was lost counts once with its retry; equal uploads that were each answered all count."""

import concurrent.futures
import time

import pytest

from bodies import MULTIPART, Pprof, multipart, push, simple
from gate import PROTO, PUSH

LABELS = {"__name__": "process_cpu", "service_name": "shop"}


def total(gate):
    return gate.get("functions", service="shop", type="cpu")["total"]


def whole(gate, body, target="/ingest?name=shop&format=pprof", kind=None):
    head = "POST %s HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Length: %d\r\n" % (target, gate.key, len(body))
    return (head + ("Content-Type: %s\r\n" % kind if kind else "")).encode() + b"\r\n" + body


@pytest.mark.parametrize("how", ["close", "reset"])
def test_lost_reply_and_retry_count_once(gate, how):
    """The client has gone before it could read its answer, as a time-out looks like from here."""
    for i in range(10):
        body = simple("f%d" % i, 100 + i).gz()
        wire = gate.wire().send(whole(gate, body))
        if how == "close":
            wire.close()
        else:
            time.sleep(0.0005 * i)
            wire.reset()
        assert gate.ingest(body).status == 200
    gate.settled()
    gate.until(lambda: total(gate), sum(100 + i for i in range(10)), 3)
    time.sleep(0.2)
    assert total(gate) == sum(100 + i for i in range(10))


def test_retried_many_times(gate):
    body = simple(value=5).gz()
    for _ in range(6):
        gate.wire().send(whole(gate, body)).close()
    assert gate.ingest(body).status == 200
    gate.until(lambda: total(gate), 5)
    time.sleep(0.3)
    assert total(gate) == 5


def test_never_answered_still_counts_once(gate):
    """By design an upload that failed for its client may count once; never twice, and never a broken one."""
    body = simple(value=5).gz()
    gate.wire().send(whole(gate, body)).close()
    gate.wire().send(whole(gate, body)[:-1]).close()
    time.sleep(0.5)
    assert total(gate) in (0, 5)


@pytest.mark.parametrize("count", [2, 33])
def test_equal_siblings_all_count(gate, count):
    body = push([(LABELS, [simple(value=5).gz()])])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert [r.status for r in pool.map(lambda _: gate.push(body), range(count))] == [200] * count
    gate.until(lambda: total(gate), 5 * count)
    assert len(gate.profiles(limit=100)) == count


def test_equal_siblings_on_one_connection(gate):
    body = simple(value=5).gz()
    with gate.wire() as wire:
        for _ in range(5):
            assert wire.send(whole(gate, body)).reply().status == 200
    gate.until(lambda: total(gate), 25)


def test_equal_siblings_in_one_request(gate):
    same = simple(value=5).gz()
    body = push([(LABELS, [same, same, same])])
    assert gate.push(body).status == 200
    gate.until(lambda: total(gate), 15)
    # The retry of that request, its answer lost, brings nothing new.
    gate.wire().send(whole(gate, body, PUSH, "application/proto")).close()
    time.sleep(0.3)
    assert total(gate) == 15


def test_siblings_beside_a_lost_one(gate):
    """Two equal uploads of two processes, one of them retried: two count."""
    body = simple(value=5).gz()
    gate.wire().send(whole(gate, body)).close()
    assert gate.ingest(body).status == 200  # its retry
    assert gate.ingest(body).status == 200  # the sibling
    gate.until(lambda: total(gate), 10)
    time.sleep(0.2)
    assert total(gate) == 10


def test_push_id_counts_once(gate):
    body = push([(LABELS, [(simple(value=5).gz(), "00000000-0000-4000-8000-000000000001")])])
    for _ in range(6):
        assert gate.push(body).status == 200
    time.sleep(0.3)
    assert total(gate) == 5
    other = push([(LABELS, [(simple(value=5).gz(), "00000000-0000-4000-8000-000000000002")])])
    assert gate.push(other).status == 200
    gate.until(lambda: total(gate), 10)


def test_multipart_boundary_is_no_identity(gate):
    """A retry may come with a new boundary: what counts is in the parts."""
    body = simple(value=5).gz()
    first = multipart([("profile", body)], "one")
    gate.wire().send(whole(gate, first, "/ingest?name=shop", "multipart/form-data; boundary=one")).close()
    second = multipart([("profile", body)], "another-one")
    assert gate.ingest(second, format=None, headers={"Content-Type": "multipart/form-data; boundary=another-one"}).status == 200
    gate.until(lambda: total(gate), 5)
    time.sleep(0.2)
    assert total(gate) == 5


def test_different_projects_and_labels_are_no_copies(gate):
    body = simple(value=5).gz()
    other = gate.create("server", "other", "--project", "other")
    gate.until(lambda: gate.ingest(body, key=other).status, 200)
    for name in ("shop", "shop{pod=a}", "shop{pod=b}"):
        assert gate.ingest(body, name=name).status == 200
    assert total(gate) == 15


def test_marks_survive_a_restart(gate):
    body = simple(value=5).gz()
    for _ in range(4):
        assert gate.ingest(body).status == 200
    gate.stop()
    gate.start()
    assert total(gate) == 20


@pytest.mark.parametrize("by", ["client", "proxy"])
def test_reset_behind_an_answer(gate, by):
    """From a client: it may not have read the answer, and the second of two equal uploads is taken for a retry. From HAProxy (names in
    lower case): that is how it ends a connection that it need not keep, having read all of it."""
    body = simple(value=5).gz()
    bytes_ = whole(gate, body)
    if by == "proxy":
        bytes_ = bytes_.replace(b"Host:", b"host:").replace(b"Content-Length:", b"content-length:")
    wires = [gate.wire().send(bytes_) for _ in range(3)]
    assert [w.reply().status for w in wires] == [200] * 3
    for w in wires:
        w.reset()
    time.sleep(0.2)
    gate.until(lambda: total(gate), 15 if by == "proxy" else 5)
