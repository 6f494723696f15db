"""Tokens: where they come from and in what order, who may do what, and how keys come and go without a restart."""

import os
import re
import time

import pytest

from bodies import simple
from gate import PROTO, PUSH, basic, bearer

FOLDED = b"main;work 3\n"
INGEST = "/ingest?name=shop"


def post(gate, headers, body=FOLDED):
    return gate.request("POST", INGEST, body, headers)


def validate(gate, headers):
    return gate.request("GET", "/otlp/v1/validate", None, headers)


class TestSources:
    def test_each(self, gate):
        for headers in (
            {"x-flamegate-token": gate.key}, {"X-Flamegate-Token": gate.key}, {"x-status200-token": gate.key}, {"x-oneuptime-token": gate.key},
            bearer(gate.key), {"Authorization": "bearer " + gate.key}, {"Authorization": "BEARER  " + gate.key},
            basic("", gate.key), basic("anyone", gate.key), basic("with:colon"[:4], gate.key),
        ):
            assert post(gate, headers).status == 200, headers

    def test_none_of_them(self, gate):
        for headers in (
            {}, {"x-flamegate-token": ""}, {"x-flamegate-token": gate.key[:-1]}, {"x-flamegate-token": gate.key + "x"}, {"x-other-token": gate.key},
            bearer(""), bearer("nope"), basic(gate.key, ""), basic("", "nope"), {"Authorization": gate.key}, {"Authorization": "Basic !!!"},
            {"Authorization": "Basic " + gate.key}, {"Authorization": "Digest " + gate.key}, {"Authorization": "Bearer"}, {"Cookie": "token=" + gate.key},
        ):
            reply = post(gate, headers)
            assert reply.status == 401, (headers, reply)
            assert reply.json()["code"] == "unauthenticated"
            assert reply.headers["content-type"] == "application/json"
            assert reply.headers["www-authenticate"] == 'Basic realm="flamegate"'
        assert gate.profiles() == []

    def test_token_in_the_query_does_not_count(self, gate):
        assert gate.request("POST", INGEST + "&token=" + gate.key, FOLDED).status == 401

    def test_configured_headers(self, make_gate):
        gate = make_gate("token_headers: [x-my-token]\n")
        assert post(gate, {"X-My-Token": gate.key}).status == 200
        assert post(gate, {"x-flamegate-token": gate.key}).status == 401
        assert post(gate, bearer(gate.key)).status == 200

    def test_first_valid_of_several(self, gate):
        """Header, then bearer, then basic; one that is not valid is passed over."""
        other = gate.create("server", "other", "--project", "elsewhere")
        gate.until(lambda: validate(gate, bearer(other)).status, 200)
        where = lambda headers: validate(gate, headers).json().get("project")
        assert where({"x-flamegate-token": gate.key, **bearer(other)}) == "default"
        assert where({"x-flamegate-token": other, **bearer(gate.key)}) == "elsewhere"
        assert where({"x-flamegate-token": "stale", **bearer(gate.key)}) == "default"
        with gate.wire() as wire:
            for lines, project in [
                ((basic("u", other), bearer(gate.key)), "default"),  # bearer before basic, whatever their order
                ((bearer(gate.key), basic("u", other)), "default"),
                ((bearer("stale"), basic("u", other)), "elsewhere"),
                ((basic("u", "stale"), bearer(other)), "elsewhere"),
                ((bearer("stale"), bearer(other)), "elsewhere"),
            ]:
                text = "".join("Authorization: %s\r\n" % line["Authorization"] for line in lines)
                wire.send(b"GET /otlp/v1/validate HTTP/1.1\r\nHost: x\r\n" + text.encode() + b"\r\n")
                assert wire.reply().json()["project"] == project, lines


class TestRights:
    def test_table(self, gate):
        browser = gate.create("browser")
        push = lambda k: gate.send(PUSH, b"", PROTO, key=k).status
        table = {  # send, read, validate
            gate.key: (200, 403, 200),
            gate.reader: (403, 200, 200),
            gate.admin: (200, 200, 200),
            browser: (403, 403, 200),
            "unknown": (401, 401, 401),
        }
        gate.until(lambda: validate(gate, bearer(browser)).status, 200)
        for key, (send, read, valid) in table.items():
            got = post(gate, bearer(key)).status
            if key == gate.admin:
                assert got in (200, 403)  # admin keys "also change and delete"
            else:
                assert got == send, key
            assert gate.read("services", key=key).status == read
            assert validate(gate, bearer(key)).status == valid
        assert gate.send(PUSH, b"", PROTO, key=browser).json()["code"] == "permission_denied"

    def test_refusals_need_no_body(self, gate):
        browser = gate.create("browser")
        gate.until(lambda: validate(gate, bearer(browser)).status, 200)
        for key, status in [("unknown", 401), (browser, 403)]:
            with gate.wire() as wire:
                wire.send(("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 1000000\r\n\r\n" % (INGEST, key)).encode())
                assert wire.reply().status == status

    def test_server_key_reads_its_own_ledger_at_most(self, gate):
        assert gate.read("functions", key=gate.key, service="shop").status == 403


class TestValidate:
    def test_good(self, gate):
        late = gate.create("server", "late one", "--expires", "90d", "--project", "team a")
        gate.until(lambda: validate(gate, bearer(late)).status, 200)
        for headers in ({"x-flamegate-token": late}, bearer(late), basic("x", late)):
            reply = validate(gate, headers)
            assert reply.status == 200 and reply.headers["content-type"] == "application/json"
            answer = reply.json()
            assert answer["valid"] is True and answer["keyType"] == "Server"
            assert answer["project"] == "team a"
            assert "late one" in answer.values()
            assert any(str(v).startswith("2") and "T" in str(v) for v in answer.values() if isinstance(v, str)), "its expiry"
        for prefix in ("/pyroscope", "//"):
            assert gate.request("GET", prefix + "/otlp/v1/validate", None, bearer(late)).status == 200
        assert validate(gate, bearer(gate.reader)).json()["keyType"] == "Reader"

    def test_bad(self, gate):
        for headers in ({}, bearer("nope")):
            reply = validate(gate, headers)
            assert reply.status == 401
            assert reply.json()["valid"] is False and reply.json()["message"]


class TestLife:
    def test_revoked_without_restart(self, gate):
        second = gate.create("server", "second")
        gate.until(lambda: post(gate, bearer(second)).status, 200)
        with gate.wire() as wire:  # also on a connection that is open already
            def one():
                wire.send(("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n" % (INGEST, second, len(FOLDED))).encode() + FOLDED)
                return wire.reply().status

            assert one() == 200
            assert gate.run("key", "revoke", "second").returncode == 0
            gate.until(lambda: post(gate, bearer(second)).status, 401)
            assert one() == 401
        assert post(gate, bearer(gate.key)).status == 200

    def test_expired(self, gate):
        """A key ends at its time without anybody doing anything."""
        short = gate.create("server", "short", "--expires", "1m")
        gate.until(lambda: post(gate, bearer(short)).status, 200)
        with open(gate.keys_file) as f:
            text = f.read()
        ends = time.time() + 2.5
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ends))
        changed, n = re.subn(r'(name: "short".*expires: )"[^"]*"', r'\1"%s"' % stamp, text)
        assert n == 1
        with open(gate.keys_file, "w") as f:
            f.write(changed)
        assert post(gate, bearer(short)).status == 200
        time.sleep(max(0, ends - time.time()) + 0.2)
        assert post(gate, bearer(short)).status == 401

    def test_disabled(self, gate):
        with open(gate.keys_file) as f:
            text = f.read()
        assert "enabled: true" in text
        with open(gate.keys_file, "w") as f:
            f.write(text.replace("enabled: true", "enabled: false", 1))
        gate.until(lambda: sorted(validate(gate, bearer(k)).status for k in (gate.key, gate.reader, gate.admin)), [200, 200, 401])

    @pytest.mark.parametrize("text", [None, "", "keys: [", "nonsense: 1\n"])
    def test_a_bad_file_keeps_the_old_keys(self, gate, text):
        if text is None:
            os.unlink(gate.keys_file)
        else:
            with open(gate.keys_file, "w") as f:
                f.write(text)
        gate.errors_expected.append("keys")
        gate.process.send_signal(1)
        gate.until(lambda: any("keys" in line and ("level=warn" in line or "level=error" in line) for line in gate.log().splitlines()), True)
        assert post(gate, bearer(gate.key)).status == 200

    def test_secrets_are_not_kept(self, gate):
        post(gate, bearer(gate.key))
        with open(gate.keys_file) as f:
            assert gate.key not in f.read()
        assert gate.key not in gate.log()
        assert os.stat(gate.keys_file).st_mode & 0o077 == 0

    def test_list_shows_no_secret(self, gate):
        done = gate.run("key", "list")
        assert done.returncode == 0
        assert gate.key not in done.stdout and "server" in done.stdout and "reader" in done.stdout

    def test_create_print_leaves_the_file_alone(self, gate):
        with open(gate.keys_file) as f:
            before = f.read()
        done = gate.run("key", "create", "--name", "ro", "--type", "server", "--print")
        assert done.returncode == 0
        secret = done.stdout.strip()
        assert len(secret) >= 43 and "\n" not in secret
        with open(gate.keys_file) as f:
            assert f.read() == before
        line = next(l for l in done.stderr.splitlines() if "hash" in l)
        assert secret not in done.stderr
        with open(gate.keys_file, "a") as f:
            f.write(line + "\n")
        gate.until(lambda: post(gate, bearer(secret)).status, 200)

    def test_imported_secret(self, gate, tmp_path):
        long, short = tmp_path / "long", tmp_path / "short"
        long.write_text("0123456789abcdef0123456789abcdef-imported\n")
        short.write_text("hunter2\n")
        gate.create("server", "imported", "--secret-file", str(long))
        gate.until(lambda: post(gate, bearer(long.read_text().strip())).status, 200)
        done = gate.run("key", "create", "--name", "weak", "--type", "server", "--secret-file", short)
        assert done.returncode not in (0, 2) and "128" in done.stderr

    def test_create_refuses(self, gate):
        for args in (["--name", "x", "--type", "king"], ["--type", "server"], ["--name", "server", "--type", "server"], ["--name", "x", "--type", "server", "--expires", "soon"]):
            done = gate.run("key", "create", *args)
            assert done.returncode != 0 and done.stdout == "", args
            assert done.stderr


class TestAnonymous:
    def test_off_by_default(self, gate):
        assert post(gate, {}).status == 401
        assert gate.request("GET", "/api/v1/services").status == 401

    @pytest.mark.parametrize("may, send, read", [("[send, read]", 200, 200), ("[send]", 200, 401), ("[read]", 401, 200)])
    def test_may(self, make_gate, may, send, read):
        gate = make_gate("anonymous: { project: lab, may: %s }\n" % may)
        assert post(gate, {}).status in (send, send + 2 if send == 401 else send)
        assert gate.request("GET", "/api/v1/services").status in (read, read + 2 if read == 401 else read)
        # A stale token is not made anonymous: its sender believes to be somebody.
        assert post(gate, bearer(gate.key)).status == 200

    def test_project(self, make_gate):
        gate = make_gate("anonymous: { project: lab, may: [send, read] }\n")
        assert post(gate, {}).status == 200
        assert len(gate.request("GET", "/api/v1/services").json()["services"]) == 1
        assert gate.get("services")["services"] == []  # the key's project is another

    def test_without_a_keys_file(self, make_gate):
        gate = make_gate("anonymous: { project: lab, may: [send, read] }\n", keys=False)
        assert post(gate, {}).status == 200


def test_projects_do_not_see_each_other(gate):
    keys = {p: (gate.create("server", p + "-s", "--project", p), gate.create("reader", p + "-r", "--project", p)) for p in ("red", "blue")}
    gate.until(lambda: validate(gate, bearer(keys["blue"][1])).status, 200)
    for i, (p, (server, _)) in enumerate(keys.items()):
        assert gate.ingest(simple(p, 3 + i).gz(), name="same", key=server).status == 200
    ids = {}
    for i, (p, (_, reader)) in enumerate(keys.items()):
        answer = gate.read("functions", key=reader, service="same", type="cpu").json()
        assert answer["total"] == 3 + i
        assert {f["function"] for f in answer["functions"]} == {"root", p}
        ids[p] = gate.read("profiles", key=reader).json()["profiles"][0]["id"]
    for path in ("profiles/%s", "profiles/%s/original", "profiles/%s/pprof"):
        assert gate.read(path % ids["red"], key=keys["red"][1]).status == 200
        assert gate.read(path % ids["red"], key=keys["blue"][1]).status == 404
    assert gate.read("functions", key=keys["blue"][1], profile=ids["red"]).status == 404
    assert gate.get("services")["services"] == []


def test_x_scope_orgid_is_ignored_on_writes(gate):
    for tenant in ("team-a", "", "a|b", "../x"):
        assert post(gate, {**bearer(gate.key), "X-Scope-OrgID": tenant}).status == 200
    gate.until(lambda: gate.get("services")["services"][0]["profiles"], 4)
