"""`migrate: manual` and `flamegate migrate`, against a real PostgreSQL."""

import concurrent.futures
import os

from bodies import simple

PASSWORD = "se-cret"


def with_password(address):
    return address.replace("postgres@", "postgres:%s@" % PASSWORD)


def run(gate, *command):
    done = gate.run(*command)
    assert PASSWORD not in done.stdout + done.stderr
    return done.returncode, done.stdout, done.stderr


def refused(gate, *words):
    code, _, err = run(gate, "serve")
    assert code == 1, (code, err)
    assert all(w in err for w in words), err


def test_manual(make_gate, postgres):
    address = postgres.create()
    database = address.rsplit("/", 1)[1]
    gate = make_gate("migrate: manual\n", start=False, samples=with_password(address))
    refused(gate, "no schema", "version 2 is needed", "flamegate migrate")
    assert postgres.ask("SELECT count(*) FROM pg_class WHERE relname = 'profile'", database) == ["0"]
    assert run(gate, "migrate")[:2] == (0, "samples in postgres: made the schema, version 2\n")
    assert run(gate, "migrate")[:2] == (0, "samples in postgres: the schema is version 2 already, nothing to do\n")
    gate.start()
    assert gate.ingest(simple(value=7).gz()).status == 200
    gate.stop()
    # as version 1 left it
    postgres.ask("DROP TABLE hour, dirty_hour, raw_gone; DROP SEQUENCE hour_id; UPDATE meta SET value = '1' WHERE key = 'version'", database)
    refused(gate, "is version 1, 2 is needed", "flamegate migrate")
    with concurrent.futures.ThreadPoolExecutor(10) as pool:  # from every pod of a job at once
        done = list(pool.map(lambda _: run(gate, "migrate"), range(10)))
    assert {d[0] for d in done} == {0}, done
    assert "samples in postgres: migrated from version 1 to 2\n" in {d[1] for d in done}
    gate.start()
    gate.until(lambda: gate.get("functions", service="shop", type="cpu")["total"], 7)
    gate.stop()
    postgres.ask("UPDATE meta SET value = '3' WHERE key = 'version'", database)
    refused(gate, "version 3", "newer")
    code, out, err = run(gate, "migrate")
    assert code == 1 and not out and "newer" in err, (code, out, err)


def test_what_cannot_be_migrated(make_gate, postgres, tmp_path):
    gate = make_gate(start=False, samples="postgres://nobody:%s@127.0.0.1:1/none" % PASSWORD)
    code, _, err = run(gate, "migrate")
    assert code == 1 and err.startswith("not migrated: ")
    gate = make_gate(start=False, samples="sqlite:")
    assert "nothing to do" in run(gate, "migrate")[1]
    assert not os.path.exists(os.path.join(gate.dir, "data", "samples"))
