"""Function shares kept per minute answer as the merge of records does: a selector that matches everything forces the merge, and both
answers must be equal in every field; through copies, retries, crashes and restarts."""

import random
import time

import pytest

from bodies import HEAP, Pprof, push, simple

S = 10**9
MINUTE = 60 * S


def both(gate, **params):
    """The answer from shares, checked against that of the merge; again while they move: a mark comes, a minute goes by."""

    def ask(**more):
        answer = gate.get("functions", **params, **more)
        for f in answer["functions"]:
            del f["line"]  # of several lines of a function, either shows one
        return answer

    for _ in range(20):
        merged, plain = ask(match="{}"), ask()
        if plain == merged or (merged, plain) == (ask(match="{}"), ask()):
            break
    assert plain["functions"] == merged["functions"], (params, [pair for pair in zip(plain["functions"], merged["functions"]) if pair[0] != pair[1]][:3])
    assert plain == merged, params
    return plain


def random_profile(rng, time_ns):
    types, period_type = rng.choice([((("samples", "count"), ("cpu", "nanoseconds")), ("cpu", "nanoseconds")), (HEAP, ("space", "bytes"))])
    p = Pprof(types, 1000, period_type, time_ns=time_ns)
    for _ in range(rng.randint(1, 40)):
        stack = [(n, rng.choice(["a.go", "b.go"]), rng.randint(1, 9)) for n in rng.choices("fghijk", k=rng.randint(0, 12))]
        p.add(stack, [rng.randint(-1, 1000) for _ in types], {"k": rng.choice("xyz")} if rng.random() < 0.3 else None)
    return p.gz()


def check(gate, start, services=("a", "b")):
    rfc = lambda t: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(t // S))
    for service in services:
        for kind in ("cpu", "alloc_space", "inuse_objects"):
            for first, last in ((0, 5), (1, 3), (2, 3), (4, 9)):
                window = {"from_": rfc(start + first * MINUTE), "until": rfc(start + last * MINUTE)}
                for more in ({}, {"sort": "total", "limit": 3}, {"limit": 1}):
                    both(gate, service=service, type=kind, **window, **more)


@pytest.mark.parametrize("seed", [1, 2])
def test_random_uploads(make_gate, seed):
    rng = random.Random(seed)
    gate = make_gate()
    start = (time.time_ns() - 10 * MINUTE) // MINUTE * MINUTE
    bodies = [random_profile(rng, start + rng.randrange(5 * MINUTE)) for _ in range(60)]
    for body in bodies:
        name = rng.choice(["a", "a{pod=1}", "b{pod=1}", "b{pod=2}"])
        for _ in range(rng.choice([1, 1, 1, 2, 3])):  # equal copies among them
            assert gate.ingest(body, name=name).status == 200
        if rng.random() < 0.2:  # and retries of what was never answered
            raw = "POST /ingest?format=pprof&name=%s HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Length: %d\r\n\r\n" % (name, gate.key, len(body))
            gate.wire().send(raw.encode() + body).close()
    time.sleep(0.5)
    check(gate, start)
    assert both(gate, service="a", type="cpu", from_="now-1h")["total"] > 0
    gate.stop()
    gate.start()
    check(gate, start)


def test_after_a_crash(make_gate):
    """What was in memory only when the process was killed is found again, or read from the records."""
    rng = random.Random(3)
    gate = make_gate()
    start = (time.time_ns() - 10 * MINUTE) // MINUTE * MINUTE
    for round_ in range(3):
        for i in range(15):
            service = rng.choice("ab")
            assert gate.ingest(random_profile(rng, start + rng.randrange(5 * MINUTE)), name=service).status == 200
            if i % 5 == 4:
                both(gate, service=service, type="cpu", from_="now-1h")
        gate.kill()
        gate.start()
        check(gate, start)
        time.sleep(0.3 * round_)


def test_identity_and_siblings(gate):
    labels = {"__name__": "process_cpu", "service_name": "a"}
    body = simple(value=5).gz()
    for _ in range(3):
        assert gate.push(push([(labels, [(body, "same-id")])])).status == 200
    for _ in range(4):
        assert gate.push(push([(labels, [body, body])])).status == 200
    gate.until(lambda: gate.get("functions", service="a", type="cpu", match="{}")["total"], 9 * 5)
    gate.until(lambda: gate.get("functions", service="a", type="cpu")["total"], 9 * 5)
    both(gate, service="a", type="cpu")


def test_answers_never_go_back(gate):
    """Every read after an acknowledgement holds it, from shares as from records."""
    for i in range(30):
        assert gate.ingest(simple("f%d" % i, 1).gz(), name="a").status == 200
        assert both(gate, service="a", type="cpu")["total"] == i + 1
