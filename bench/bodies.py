#!/usr/bin/env python3
"""Fill build/bench/bodies with the uploads that the benches send.

usage: bodies.py OUT [FROM]

Where FROM (default ../shared/bench/bodies) holds a body of that name it is taken, else one of the same shape is made: as many
samples, locations, functions and strings, stacks as deep, and names that compress about as well. Beside each NAME.pb.gz lies
NAME.open: a gzip header and deflate blocks without a last one, then CRC-32 and size of what they hold (4 bytes each, little
endian). A sender closes it with one stored block holding a fresh time_nanos, so that every upload is another one and still
a single gzip member, as Go's runtime writes it. huge-16m.pb is not compressed: it is for the loop's lag.
"""
import os
import random
import struct
import sys
import zlib

# name: samples, locations, functions, files, (least, most) frames, share of samples that bring no new frame, sample types,
# share of locations with inlined frames, kind of labels, order of fields as Go's runtime ("go") or the pprof library ("lib")
SHAPES = {
    "real-cpu-15s": (659, 1111, 579, 178, (2, 42), 0.22, "cpu", 0.16, None, "go"),
    "real-heap": (737, 727, 587, 231, (2, 40), 0.68, "heap", 0.14, "bytes", "go"),
    "ebpf": (60, 230, 190, 40, (6, 40), 0.30, "cpu", 0.0, None, "go"),
    "large-1m": (8000, 13000, 13000, 2900, (20, 50), 0.90, "cpu", 0.0, None, "lib"),
    "large-4m": (8000, 60000, 60000, 4700, (40, 90), 0.78, "cpu", 0.0, None, "lib"),
    "large-4m-lab2560": (8000, 59000, 59000, 4700, (40, 90), 0.78, "cpu", 0.0, "lab2560", "lib"),
    "huge-16m": (20000, 108000, 108000, 8000, (40, 90), 0.80, "cpu", 0.0, None, "lib"),
}
TYPES = {
    "cpu": (("samples", "count"), ("cpu", "nanoseconds")),
    "heap": (("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")),
}


def varint(v):
    out = bytearray()
    while v > 127:
        out.append(v & 127 | 128)
        v >>= 7
    out.append(v)
    return bytes(out)


def number(field, v):
    return varint(field << 3) + varint(v)


def block(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


class Names:
    """Go-like names: words drawn unevenly, so that text repeats about as much as in real programs."""

    def __init__(self, rnd, files):
        self.rnd = rnd
        syllables = [a + b for a in "b c d f g h k l m n p r s t v w st tr pr".split() for b in "a e i o u en er ol in at".split()]
        self.words = ["".join(rnd.choice(syllables) for _ in range(rnd.randint(1, 5 if files > 1000 else 3))) for _ in range(120 + files)]
        self.paths, self.seen = [], set()
        hosts = ["github.com", "google.golang.org", "k8s.io", "go.opentelemetry.io", "gopkg.in", "internal"]
        repos = ["/".join((rnd.choice(hosts), self.word(), self.word())) for _ in range(max(4, files // 40))]
        while len(self.paths) < files:
            repo = rnd.choice(repos)
            package = "/".join([repo] + [self.word() for _ in range(rnd.randint(0, 4))])
            version = "v%d.%d.0" % (len(repo) % 3, len(repo))
            home = "/root/go/pkg/mod/" + package.replace(repo, repo + "@" + version, 1)
            self.paths.append((package, "%s/%s_%s.go" % (home, self.word(), self.word())))

    def word(self):
        return self.words[int(len(self.words) * self.rnd.random() ** 2)]

    def function(self):
        rnd = self.rnd
        while True:
            package, path = rnd.choice(self.paths)
            method = self.word().capitalize() + self.word().capitalize()
            if rnd.random() < 0.6:
                method = "(*%s%s).%s" % (rnd.choice(path.split("/")[-1][:-3].split("_")).capitalize(), self.word().capitalize(), method)
            if rnd.random() < 0.1:
                method += ".func%d" % rnd.randint(1, 9)
            name = package + "." + method
            if name not in self.seen:
                self.seen.add(name)
                return name, path


class Body:
    def __init__(self, name, shape):
        (self.n_samples, self.n_locations, self.n_functions, files, self.depth, self.old, kind, self.inlined, self.labels,
         self.order) = shape
        self.rnd = random.Random(name)
        self.names = Names(self.rnd, files)
        self.types = TYPES[kind]
        self.strings, self.index = [], {}
        self.id_of("")

    def id_of(self, text):
        if text not in self.index:
            self.index[text] = len(self.strings)
            self.strings.append(text)
        return self.index[text]

    def stacks(self):
        """Leaf first. A stack keeps the root side of an earlier one and goes on with frames seen before or new ones."""
        rnd, out, used = self.rnd, [], 0
        fresh = self.n_locations / (self.n_samples * (1 - self.old))
        for i in range(self.n_samples):
            depth = rnd.randint(*self.depth)
            parent = rnd.choice(out) if out else []
            left = self.n_locations - used
            new = 0
            if i == 0 or (rnd.random() >= self.old and left):
                new = min(left, depth, max(1, int(rnd.expovariate(1 / fresh))))
            kept = min(len(parent), (depth - new) // rnd.choice((1, 2, 4)))
            keep = parent[-kept:] if kept else []
            fill = depth - new - kept
            start = rnd.randint(1, max(1, used - fill))
            middle = list(range(start + fill - 1, start - 1, -1))
            used += new
            out.append(list(range(used, used - new, -1)) + middle + keep)
        # what no stack has taken hangs on the last ones, so that every location is used
        for location in range(used + 1, self.n_locations + 1):
            out[rnd.randrange(len(out))].insert(0, location)
        return out

    def sample(self, stack):
        rnd = self.rnd
        count = 1 + int(rnd.expovariate(0.3))
        if len(self.types) == 2:
            values = (count, count * 10000000)
        else:
            live = rnd.choice((0, 0, 1)) * count
            values = (count * 40, count * 40 * 524288, live, live * 524288)
        places = block(1, b"".join(map(varint, stack)))
        if self.order == "go" and len(values) == 2:
            data = b"".join(number(2, v) for v in values) + places
        elif self.order == "go":
            data = block(2, b"".join(map(varint, values))) + places
        else:
            data = places + block(2, b"".join(map(varint, values)))
        if self.labels == "bytes" and rnd.random() < 0.94:
            data += block(3, number(1, self.id_of("bytes")) + number(3, 16 * rnd.randint(1, 160)))
        elif self.labels == "lab2560":
            for key, value in (("endpoint", "/api/v1/resource/%d" % rnd.randrange(40)), ("thread", "worker-%d" % rnd.randrange(64))):
                data += block(3, number(1, self.id_of(key)) + number(2, self.id_of(value)))
        return block(2, data)

    def location(self, i):
        rnd, lines = self.rnd, b""
        functions = [i if i <= self.n_functions else rnd.randint(1, self.n_functions)]
        while rnd.random() < self.inlined:
            functions.append(rnd.randint(1, self.n_functions))
        for f in functions:
            lines += block(4, number(1, f) + number(2, rnd.randint(10, 1200)))
        return block(4, number(1, i) + number(2, 1) + number(3, 0x400000 + functions[0] * 997 + rnd.randrange(900)) + lines)

    def function(self, i):
        name, path = self.names.function()
        at = self.id_of(name)
        return block(5, number(1, i) + number(2, at) + number(3, at) + number(4, self.id_of(path)) + number(5, self.rnd.randint(1, 1200)))

    def encode(self):
        types = [block(1, number(1, self.id_of(t)) + number(2, self.id_of(u))) for t, u in self.types]
        stacks = self.stacks()
        samples = [self.sample(s) for s in stacks]
        mapping = block(3, number(1, 1) + number(2, 0x400000) + number(3, 0x5000000) + number(5, self.id_of("/usr/bin/service")) + number(7, 1))
        locations = [self.location(i + 1) for i in range(self.n_locations)]
        functions = [self.function(i + 1) for i in range(self.n_functions)]
        period = block(11, number(1, self.id_of(self.types[-1][0])) + number(2, self.id_of(self.types[-1][1])))
        times = number(10, 15000000000) + period + number(12, 10000000)
        strings = [block(6, s.encode()) for s in self.strings]
        if self.order == "lib":
            return b"".join(types + samples + [mapping] + locations + functions + strings + [times])
        out, at, sent = types + [times], 0, 0
        for stack, sample in zip(stacks, samples):
            top = max(stack)
            for i in range(at, top):
                out.append(locations[i])
                if i < len(functions):
                    out.append(functions[i])
            at = max(at, top)
            sent = max(sent, at)
            out.append(sample)
        return b"".join(out + functions[sent:] + [mapping] + strings)


def keep(path, data):
    """Whole or not at all: an interrupted run leaves no half file."""
    with open(path + ".new", "wb") as f:
        f.write(data)
    os.rename(path + ".new", path)


def main():
    out = sys.argv[1]
    source = sys.argv[2] if len(sys.argv) > 2 else "../shared/bench/bodies"
    os.makedirs(out, exist_ok=True)
    for name, shape in SHAPES.items():
        if name.startswith("huge"):
            path = os.path.join(out, name + ".pb")
            if not os.path.exists(path):
                keep(path, Body(name, shape).encode())
            continue
        given = os.path.join(source, name + ".pb.gz")
        packed, opened = os.path.join(out, name + ".pb.gz"), os.path.join(out, name + ".open")
        if os.path.exists(opened):
            continue
        if os.path.exists(given):
            with open(given, "rb") as f:
                packed_bytes = f.read()
            raw = zlib.decompress(packed_bytes, 31)
        else:
            raw = Body(name, shape).encode()
            z = zlib.compressobj(1, zlib.DEFLATED, 31)
            packed_bytes = z.compress(raw) + z.flush()
        keep(packed, packed_bytes)
        z = zlib.compressobj(1, zlib.DEFLATED, -15)
        header = b"\x1f\x8b\x08\0\0\0\0\0\x04\xff"
        keep(opened, header + z.compress(raw) + z.flush(zlib.Z_SYNC_FLUSH) + struct.pack("<II", zlib.crc32(raw), len(raw)))
        print("%-18s %9d gzip %9d raw%s" % (name, len(packed_bytes), len(raw), "" if os.path.exists(given) else " (made)"))


if __name__ == "__main__":
    main()
