"""Fixtures: a gateway of its own for every test, checked at its end (exit code, counters, log)."""

import os
import shutil

import pytest

from gate import BINARY, Gate


def pytest_sessionstart(session):
    if not os.access(BINARY, os.X_OK):
        pytest.exit("no binary at %s: run `make` first, or set FLAMEGATE_BIN" % BINARY, 2)


@pytest.fixture
def make_gate(tmp_path_factory, request):
    """Makes gateways, started. Call with YAML that replaces or adds settings."""
    made = []

    def make(conf="", start=True, keys=True):
        gate = Gate(tmp_path_factory.mktemp("gate"), conf, keys)
        made.append(gate)
        return gate.start() if start else gate

    yield make
    wrong = []
    for gate in made:
        try:
            if gate.process is not None:
                gate.stop()
            shutil.rmtree(gate.dir)  # what failed stays, to be looked at
        except AssertionError as e:
            wrong.append(str(e))
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def gate(make_gate):
    return make_gate()
