"""Fixtures: a gateway of its own for every test, checked at its end (exit code, counters, log); one PostgreSQL for all that ask."""

import os
import shutil

import pytest

from gate import BINARY, Gate
from postgres import OVER_POSTGRES, Postgres
from redis import OVER_REDIS, Redis


def pytest_configure(config):
    config.addinivalue_line("markers", "embedded(why): needs the embedded store, so it is skipped over PostgreSQL")


def pytest_sessionstart(session):
    if not os.access(BINARY, os.X_OK):
        pytest.exit("no binary at %s: run `make` first, or set FLAMEGATE_BIN" % BINARY, 2)


def pytest_collection_modifyitems(items):
    for item in items:
        mark = item.get_closest_marker("embedded")
        if mark and OVER_POSTGRES:
            item.add_marker(pytest.mark.skip(reason="over PostgreSQL: " + mark.args[0]))


@pytest.fixture(scope="session")
def postgres():
    server = Postgres()
    try:
        yield server.start()
    finally:
        server.close()


@pytest.fixture(scope="session")
def redis():
    server = Redis()
    try:
        yield server.start()
    finally:
        server.close()


@pytest.fixture
def make_gate(tmp_path_factory, request):
    """Makes gateways, started. Call with YAML that replaces or adds settings."""
    made = []
    server = request.getfixturevalue("postgres") if OVER_POSTGRES else None
    shares_server = request.getfixturevalue("redis") if OVER_REDIS else None

    def make(conf="", start=True, keys=True, samples=None, shares=None):
        samples = samples or (server.create() if server else None)
        shares = shares or (shares_server.create() if shares_server else None)
        gate = Gate(tmp_path_factory.mktemp("gate"), conf, keys, samples, shares)
        gate.ask = lambda sql: server.ask(sql, samples.rsplit("/", 1)[1])
        made.append(gate)
        return gate.start() if start else gate

    yield make
    wrong = []
    for gate in made:
        try:
            if gate.process is not None:
                gate.stop()
            shutil.rmtree(gate.dir)  # what failed stays, to be looked at
            if server and gate.samples.startswith("postgres"):
                server.drop(gate.samples)
        except AssertionError as e:
            wrong.append(str(e))
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def gate(make_gate):
    return make_gate()
