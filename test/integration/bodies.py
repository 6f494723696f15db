"""Makes and reads request bodies: a small protobuf writer, pprof, PushRequest, multipart, folded text, gzip and zstd frames.

Everything is written from the published field numbers, with nothing of the product's own code, so that it can be its oracle.
"""

import base64
import gzip
import hashlib
import json
import os
import time
import zlib

MiB = 1 << 20
ANONYMOUS = ("<lambda>", "(anonymous)")


# --- protobuf -------------------------------------------------------------------------------------------------------
def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def tag(number, wire):
    return varint(number << 3 | wire)


def number(field, value):
    return b"" if value == 0 else tag(field, 0) + varint(value)


def block(field, payload):
    return tag(field, 2) + varint(len(payload)) + payload


def fields(data):
    """Yields (field number, value): int for varints and fixed ones, bytes for blocks."""
    at, end = 0, len(data)

    def read():
        nonlocal at
        shift = value = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    while at < end:
        key = read()
        wire = key & 7
        if wire == 0:
            yield key >> 3, read()
        elif wire == 2:
            size = read()
            assert at + size <= end, "block runs past the end"
            yield key >> 3, data[at : at + size]
            at += size
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            yield key >> 3, int.from_bytes(data[at : at + size], "little")
            at += size
        else:
            raise ValueError("wire type %d" % wire)


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def unpack(value):
    """A repeated number, packed or one of the unpacked."""
    if isinstance(value, int):
        return [value]
    out, shift, current = [], 0, 0
    for byte in value:
        current |= (byte & 127) << shift
        if byte < 128:
            out.append(current)
            shift = current = 0
        else:
            shift += 7
    return out


# --- pprof ----------------------------------------------------------------------------------------------------------
CPU = (("samples", "count"), ("cpu", "nanoseconds"))
HEAP = (("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes"))


class Pprof:
    """Builds one pprof. A frame is a name, or (name, file), or (name, file, line), or (name, file, line, start line)."""

    def __init__(self, types=CPU, period=10_000_000, period_type=("cpu", "nanoseconds"), time_ns=None, duration_ns=10**10,
                 strings_last=True, first_id=1):
        self.strings = {"": 0}
        self.functions, self.locations = {}, {}
        self.parts = []
        self.types = types
        self.samples = []
        self.strings_last = strings_last
        self.first_id = first_id
        self.time_ns = time.time_ns() if time_ns is None else time_ns
        self.head = b"".join(block(1, number(1, self.text(t)) + number(2, self.text(u))) for t, u in types)
        if period_type:
            self.head += block(11, number(1, self.text(period_type[0])) + number(2, self.text(period_type[1])))
        self.head += number(12, period) + number(9, self.time_ns) + number(10, duration_ns)

    def text(self, s):
        return self.strings.setdefault(s, len(self.strings))

    def location(self, frame):
        frame = (frame,) if isinstance(frame, str) else tuple(frame)
        name, file, line, start = frame + ("", 0, 0)[len(frame) - 1 :]
        key = (name, file, line, start)
        if key not in self.locations:
            function = (name, file, start)
            if function not in self.functions:
                self.functions[function] = self.first_id + len(self.functions)
                self.parts.append(block(5, number(1, self.functions[function]) + number(2, self.text(name)) + number(4, self.text(file)) + number(5, start)))
            self.locations[key] = self.first_id + len(self.locations)
            self.parts.append(block(4, number(1, self.locations[key]) + block(4, number(1, self.functions[function]) + number(2, line))))
        return self.locations[key]

    def inlined(self, frames):
        """One location of several lines, innermost first, for add(..., raw locations)."""
        ident = self.first_id + len(self.locations)
        self.locations[("inlined", ident)] = ident
        lines = b""
        for name in frames:
            function = (name, "", 0)
            if function not in self.functions:
                self.functions[function] = self.first_id + len(self.functions)
                self.parts.append(block(5, number(1, self.functions[function]) + number(2, self.text(name))))
            lines += block(4, number(1, self.functions[function]))
        self.parts.append(block(4, number(1, ident) + lines))
        return ident

    def add(self, stack, values, labels=None, numbers=None):
        """stack: root first, of frames or of location ids."""
        values = [values] * len(self.types) if isinstance(values, int) else values
        ids = b"".join(varint(f if isinstance(f, int) else self.location(f)) for f in reversed(stack))
        body = (block(1, ids) if ids else b"") + block(2, b"".join(map(varint, values)))
        for key, value in (labels or {}).items():
            body += block(3, number(1, self.text(key)) + number(2, self.text(value)))
        for key, value in (numbers or {}).items():
            body += block(3, number(1, self.text(key)) + number(3, value))
        self.samples.append(block(2, body))
        return self

    def raw(self):
        table = b"".join(block(6, s.encode() if isinstance(s, str) else s) for s in self.strings)
        body = self.head + b"".join(self.samples) + b"".join(self.parts)
        return body + table if self.strings_last else table + body

    def gz(self):
        return gzip.compress(self.raw(), 1, mtime=0)


def simple(name="main", value=7, types=CPU, **kw):
    """A one-sample profile: root;NAME."""
    return Pprof(types, **kw).add(["root", name], [value] * len(types))


class Profile:
    """A pprof read back: types with totals, self and total per (function name, file), samples as (stack root first, labels, values)."""

    def __init__(self, data):
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        strings, types, samples, locations, functions, mappings = [], [], [], {}, {}, {}
        self.time_ns = self.duration_ns = self.period = 0
        period_type = None
        for field, value in fields(data):
            if field == 1:
                types.append(dict(fields(value)))
            elif field == 2:
                samples.append(value)
            elif field == 3:
                m = dict(fields(value))
                mappings[m.get(1, 0)] = m
            elif field == 4:
                ident, mapping, address, lines = 0, 0, 0, []
                for f, v in fields(value):
                    if f == 1:
                        ident = v
                    elif f == 2:
                        mapping = v
                    elif f == 3:
                        address = v
                    elif f == 4:
                        lines.append(dict(fields(v)))
                locations[ident] = (lines, mapping, address)
            elif field == 5:
                f = dict(fields(value))
                functions[f.get(1, 0)] = f
            elif field == 6:
                strings.append(value.decode())
            elif field == 9:
                self.time_ns = signed(value)
            elif field == 10:
                self.duration_ns = signed(value)
            elif field == 11:
                period_type = dict(fields(value))
            elif field == 12:
                self.period = signed(value)
        self.types = [(strings[t.get(1, 0)], strings[t.get(2, 0)]) for t in types]
        self.period_type = (strings[period_type.get(1, 0)], strings[period_type.get(2, 0)]) if period_type else None
        self.mappings = {i: (strings[m.get(5, 0)], strings[m.get(6, 0)]) for i, m in mappings.items()}

        def frames(ident):
            lines, _, address = locations[ident]
            if not lines:
                return [("0x%x" % address, "")]
            out = []
            for line in lines:  # innermost first
                f = functions[line[1]]
                out.append((strings[f.get(2, 0)], strings[f.get(4, 0)]))
            return out

        self.samples = []
        for raw in samples:
            stack, values, labels = [], [], []
            for field, value in fields(raw):
                if field == 1:
                    for ident in unpack(value):
                        stack += frames(ident)
                elif field == 2:
                    values += [signed(v) for v in unpack(value)]
                elif field == 3:
                    label = dict(fields(value))
                    key = strings[label.get(1, 0)]
                    labels.append((key, strings[label[2]] if 2 in label else signed(label.get(3, 0))))
            self.samples.append((tuple(reversed(stack)), tuple(sorted(labels, key=str)), values))
        self.totals = {t: sum(s[2][i] for s in self.samples) for i, t in enumerate(self.types)}

    def functions(self, index):
        """(name, file) -> [self, total] of one type; a function counts once per sample."""
        rows = {}
        for stack, _, values in self.samples:
            v = values[index]
            for function in set(stack):
                rows.setdefault(function, [0, 0])[1] += v
            if stack:
                rows[stack[-1]][0] += v
        return {k: v for k, v in rows.items() if v != [0, 0]}

    def stacks(self, index):
        """'a;b;c' of names -> value, of one type."""
        out = {}
        for stack, _, values in self.samples:
            key = ";".join(name for name, _ in stack)
            out[key] = out.get(key, 0) + values[index]
        return {k: v for k, v in out.items() if v}


# --- containers -----------------------------------------------------------------------------------------------------
def push(series):
    """series: list of (labels as dict or list of pairs, list of payload or (payload, id))."""
    out = b""
    for labels, samples in series:
        pairs = labels.items() if isinstance(labels, dict) else labels
        body = b"".join(block(1, block(1, k.encode()) + block(2, v.encode())) for k, v in pairs)
        for sample in samples:
            payload, ident = sample if isinstance(sample, tuple) else (sample, "")
            body += block(2, block(1, payload) + (block(2, ident.encode()) if ident else b""))
        out += block(1, body)
    return out


def push_json(series):
    def one(sample):
        payload, ident = sample if isinstance(sample, tuple) else (sample, "")
        return {"rawProfile": base64.b64encode(payload).decode(), **({"ID": ident} if ident else {})}

    rows = []
    for labels, samples in series:
        pairs = labels.items() if isinstance(labels, dict) else labels
        rows.append({"labels": [{"name": k, "value": v} for k, v in pairs], "samples": [one(s) for s in samples]})
    return json.dumps({"series": rows}).encode()


BOUNDARY = "flame-7f3a"


def multipart(parts, boundary=BOUNDARY):
    """parts: list of (field, bytes) or (field, bytes, headers as bytes). Files all of them."""
    out = b""
    for part in parts:
        name, body = part[:2]
        more = part[2] if len(part) > 2 else b"Content-Type: application/octet-stream\r\n"
        out += b'--%s\r\nContent-Disposition: form-data; name="%s"; filename="%s.bin"\r\n%s\r\n' % (boundary.encode(), name.encode(), name.encode(), more)
        out += body + b"\r\n"
    return out + b"--" + boundary.encode() + b"--\r\n"


MULTIPART = {"Content-Type": "multipart/form-data; boundary=" + BOUNDARY}


def zeros_gz(size):
    """gzip of `size` zero bytes."""
    c = zlib.compressobj(9, zlib.DEFLATED, 31)
    out, step = [], bytes(MiB)
    while size:
        n = min(size, MiB)
        out.append(c.compress(step[:n]))
        size -= n
    return b"".join(out) + c.flush()


def _zstd(blocks, window=0x58):
    """A frame from (type, size, bytes) blocks; window descriptor 0x58 is 2 MiB."""
    out = b"\x28\xb5\x2f\xfd\x00" + bytes([window])
    for i, (kind, size, data) in enumerate(blocks):
        out += ((i == len(blocks) - 1) | kind << 1 | size << 3).to_bytes(3, "little") + data
    return out


def zstd_raw(data):
    """A zstd frame of stored blocks."""
    step = 128 << 10
    pieces = [data[i : i + step] for i in range(0, len(data), step)] or [b""]
    return _zstd([(0, len(p), p) for p in pieces])


def zstd_zeros(size):
    step = 128 << 10
    return _zstd([(1, min(step, size - i), b"\0") for i in range(0, size, step)])


# --- large bodies -----------------------------------------------------------------------------------------------------
class Large:
    """Bodies of the shape of an overload report: 60,000 functions, 8,000 samples 65 deep, 9 MB, 4 MB as gzip; names that hardly
    compress, and different ones in every body. What is equal in all of them is compressed once."""

    def __init__(self, functions=60_000, samples=8_000, depth=65, seed=1):
        self.count = functions
        state = seed
        parts = [block(1, number(1, 1) + number(2, 2)), block(1, number(1, 3) + number(2, 4))]
        base = 5
        self.total = 0
        for _ in range(samples):
            ids = bytearray()
            for _ in range(depth):
                state = (state * 6364136223846793005 + 1442695040888963407) & (1 << 64) - 1
                ids += varint(1 + (state >> 33) % functions)
            value = 1 + (state >> 40) % 50
            self.total += value
            parts.append(block(2, block(1, bytes(ids)) + block(2, varint(value) + varint(value * 10_000_000))))
        for i in range(1, functions + 1):
            parts.append(block(4, number(1, i) + block(4, number(1, i) + number(2, 1 + i % 900))))
            parts.append(block(5, number(1, i) + number(2, base + i - 1) + number(3, base + i - 1)))
        parts += [block(11, number(1, 3) + number(2, 4)), number(12, 10_000_000), number(10, 10**10)]
        self.prefix = b"".join(parts)
        self._state = zlib.compressobj(1, zlib.DEFLATED, 31)
        self._done = self._state.compress(self.prefix)

    def body(self, time_ns=None):
        """One more gzip body; its cpu total is self.total * 10 ms."""
        names = os.urandom(self.count * 24).hex()
        table = [b"", b"samples", b"count", b"cpu", b"nanoseconds"]
        suffix = number(9, time.time_ns() if time_ns is None else time_ns)
        suffix += b"".join(block(6, s) for s in table)
        prefix = b"github.com/example/shop/internal/checkout.(*Basket)."
        head = tag(6, 2) + varint(len(prefix) + 48) + prefix
        suffix += b"".join([head + names[i * 48 : i * 48 + 48].encode() for i in range(self.count)])
        c = self._state.copy()
        return self._done + c.compress(suffix) + c.flush()


def sha256(data):
    return hashlib.sha256(data).hexdigest()
