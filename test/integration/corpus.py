"""The captured requests of test/corpus: reading them, replaying them byte for byte, and what their independent reader found, turned
the way design.md 4 says."""

import glob
import gzip
import json
import os

from bodies import fields
from gate import ROOT

FOLDER = os.path.join(ROOT, "test", "corpus")
TAKEN = ("pprof", "multipart pprof", "folded", "push proto", "push json")


class Capture:
    def __init__(self, path):
        with open(path) as f:
            self.wire = json.load(f)
        with open(path[:-5] + ".expect.json") as f:
            self.expect = json.load(f)
        with open(path[:-5] + ".body", "rb") as f:
            self.body = f.read()
        self.name = "/".join(path[:-5].split("/")[-2:])
        self.payload = self.expect["payload"]
        self.http1 = self.wire["http_version"] != "HTTP/2"
        self.content_type = next((v for k, v in self.wire["headers"] if k.lower() == "content-type"), "")
        self.taken = self.http1 and self.payload in TAKEN
        self.query = self.expect.get("query") or {}

    def head(self):
        lines = ["%s %s %s" % (self.wire["method"], self.wire["target"], self.wire["http_version"])]
        return "".join(line + "\r\n" for line in lines + ["%s: %s" % (k, v) for k, v in self.wire["headers"]]).encode() + b"\r\n"

    def framed(self):
        """The body with its chunks as captured."""
        if not self.wire["chunked"]:
            return self.body
        out, at = b"", 0
        for size in self.wire["chunk_sizes"]:
            if size:
                out += b"%x\r\n" % size + self.body[at : at + size] + b"\r\n"
                at += size
        assert at == len(self.body)
        return out + b"0\r\n\r\n"

    def replay(self, gate):
        with gate.wire(30) as wire:
            if self.wire["expect_100"]:
                wire.send(self.head())
                status, _ = wire.head()
                assert status == 100, "%s instead of 100" % status
                wire.send(self.framed())
            else:
                wire.send(self.head() + self.framed())
            return wire.reply()

    # --- what must be found ---
    def service(self):
        labels = (self.expect.get("name") or {}).get("labels", {})
        app = (self.expect.get("name") or {}).get("app")
        if self.payload == "folded" and app.rsplit(".", 1)[-1] in ("cpu", "itimer"):
            app = app.rsplit(".", 1)[0]
        return labels.get("service_name", app)

    def profiles(self):
        """[(service, __name__ or None, [(type, unit, total, {function: self}, {function: total})])], empty profiles left out."""
        e, out = self.expect, []
        if e.get("folded"):
            period = 10**9 // int(self.query.get("sampleRate", 100))
            f = e["folded"]
            turn = lambda rows: {r["function"]: r["value"] * period for r in rows or []}
            out.append((self.service(), "process_cpu", [("cpu", "nanoseconds", f["total"] * period, turn(f["top_self"]), turn(f["top_cumulative"]))]))
        elif e.get("push"):
            for series in e["push"]["series"]:
                labels = dict(series["labels"])
                for sample in series["samples"]:
                    out.append((labels.get("service_name", "unknown_service"), labels.get("__name__"), self._types(sample["profile"])))
        else:
            pprof = e.get("pprof") or next(p["pprof"] for p in e["multipart"]["parts"] if p["name"] == "profile")
            out.append((self.service(), None, self._types(pprof)))
        return [p for p in out if p[2]]

    @staticmethod
    def _types(pprof):
        names = {(t["type"], t["unit"]) for t in pprof["sample_types"]}
        period = pprof["period_type"] or {}
        out = []
        if not pprof["samples"] or not any(t["nonzero_samples"] for t in pprof["sample_types"]):
            return out
        for t in pprof["sample_types"]:
            kind, unit, factor = t["type"], t["unit"], 1
            assert t["negative_samples"] == 0
            if unit == "microseconds":
                unit, factor = "nanoseconds", 1000
            if (kind, unit) == ("samples", "count") and not any(k == "cpu" for k, _ in names) and (period.get("type"), period.get("unit")) == ("cpu", "nanoseconds"):
                kind, unit, factor = "cpu", "nanoseconds", pprof["period"]
            turn = lambda rows: {r["function"]: r["value"] * factor for r in rows or [] if not r["function"].startswith("0x")}
            out.append((kind, unit, t["total"] * factor, turn(t["top_self"]), turn(t["top_cumulative"])))
        return out

    def inner(self):
        """The inner bytes as sent, in the order of profiles() before empty ones are left out."""
        body = self.body
        if self.expect.get("content_encoding") == "gzip":
            body = gzip.decompress(body)
        if self.payload == "push proto":
            return [dict(fields(s))[1] for f, series in fields(body) if f == 1 for g, s in fields(series) if g == 2]
        if self.payload == "push json":
            import base64

            return [base64.b64decode(s.get("rawProfile") or s.get("raw_profile")) for r in json.loads(body)["series"] for s in r["samples"]]
        if self.payload == "multipart pprof":
            boundary = b"--" + self.expect["multipart"]["boundary"].encode()
            for part in body.split(boundary)[1:]:
                head, _, content = part.partition(b"\r\n\r\n")
                if b'name="profile"' in head:
                    return [content[:-2]]
        return [body]


def captures():
    return [Capture(p) for p in sorted(glob.glob(FOLDER + "/*/*.json")) if not p.endswith(".expect.json")]
