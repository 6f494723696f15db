"""What happens to a process while it runs: files change, descriptors and disk run out, connections age, systemd asks."""

import http.client
import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from bodies import push, simple
from gate import SANITIZED

FOLDED = b"main;work 3\n"


def upload(gate, body=FOLDED):
    return ("POST /ingest?name=shop&format=folded HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Length: %d\r\n\r\n" % (gate.key, len(body))).encode() + body


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


# --- files ---


def test_configuration_is_watched(make_gate):
    gate = make_gate("limits: {body: 1KiB}\n")
    large = b"main;%s 1\n" % (b"x" * 2000)
    assert gate.ingest(large, format="folded").status == 413
    first, loaded = gate.count("flamegate_config_hash"), gate.count("flamegate_config_last_reload_success_timestamp_seconds")
    with gate.wire() as kept:
        assert kept.send(upload(gate)).reply().status == 200
        gate.configure("limits: {body: 1MiB}\n")
        gate.until(lambda: gate.ingest(large, format="folded").status, 200)
        assert gate.count("flamegate_config_hash") != first
        good = open(gate.conf_file).read()
        write(gate.conf_file, good + "nonsense: 1\n")
        gate.until(lambda: gate.count("flamegate_config_last_reload_successful"), 0)
        assert gate.ingest(large, format="folded").status == 200
        gate.configure("limits: {body: 1KiB}\n")  # as it was: so is its name
        gate.until(lambda: gate.count("flamegate_config_last_reload_successful"), 1)
        assert gate.count("flamegate_config_hash") == first
        assert gate.count("flamegate_config_last_reload_success_timestamp_seconds") >= loaded
        assert kept.send(upload(gate)).reply().status == 200
    assert "nonsense" in gate.log()


def test_configmap_links_and_renames(make_gate):
    gate = make_gate(start=False)
    text = open(gate.conf_file).read()
    for i in range(3):
        os.mkdir(os.path.join(gate.dir, "..%d" % i))
        write(os.path.join(gate.dir, "..%d" % i, "conf.yaml"), text + "limits: {body: %dB}\n" % (2000 + i))
    os.symlink("..0", os.path.join(gate.dir, "..data"))
    os.unlink(gate.conf_file)
    os.symlink(os.path.join("..data", "conf.yaml"), gate.conf_file)
    gate.start()
    bound = lambda: re.search(r"limits\.body = (\d+)", gate.ingest(b"main;%s 1\n" % (b"x" * 3000), format="folded").text).group(1)
    assert bound() == "2000"
    os.symlink("..1", os.path.join(gate.dir, "tmp"))
    os.rename(os.path.join(gate.dir, "tmp"), os.path.join(gate.dir, "..data"))
    gate.until(bound, "2001")
    os.rename(os.path.join(gate.dir, "..2", "conf.yaml"), os.path.join(gate.dir, "..1", "conf.yaml"))  # an editor's way
    gate.until(bound, "2002")


def test_half_written_files_are_not_read(make_gate):
    """A writer that takes its time: no look in between sees a file at rest."""
    gate = make_gate("limits: {body: 2KiB}\n")
    text = open(gate.conf_file).read() + "timeouts: {head: 9s}\n" + "# padding\n" * 50
    fd = os.open(gate.conf_file, os.O_WRONLY | os.O_TRUNC)
    for at in range(0, len(text), 25):
        os.write(fd, text[at:at + 25].encode())
        time.sleep(0.02)
    os.close(fd)
    gate.until(lambda: gate.log().count("configuration reloaded"), 1)
    assert "not reloaded" not in gate.log()


def test_secret_files_are_watched(make_gate):
    gate = make_gate(start=False)
    secret = os.path.join(gate.dir, "samples")
    write(secret, "sqlite:\n")
    gate.configure("samples_file: %s\n" % secret)
    gate.start()
    write(secret, "null:\n")
    gate.until(lambda: "takes effect at the next start only" in gate.log(), True)


def test_reload_every_tenth_of_a_second_drops_nothing(gate):
    done, stop = [], threading.Event()

    def client():
        with gate.wire() as wire:
            while not stop.is_set():
                done.append(wire.send(upload(gate)).reply().status)

    threads = [threading.Thread(target=client) for _ in range(4)]
    for t in threads:
        t.start()
    for i in range(20):
        if i % 2:
            gate.configure("limits: {depth: %d}\n" % (100 + i))
        gate.process.send_signal(signal.SIGHUP)
        time.sleep(0.1)
    stop.set()
    for t in threads:
        t.join()
    assert set(done) == {200} and len(done) > 50
    assert gate.count("flamegate_connections_opened_total") < 4 + 10  # those of the clients stayed


# --- connections ---


def test_connections_age(make_gate):
    gate = make_gate("max_connection_age: 1s\n")
    ages = []

    def client():
        with gate.wire() as wire:
            start = time.monotonic()
            while wire.send(upload(gate)).reply().headers.get("connection", "") != "close":
                time.sleep(0.01)
            ages.append(time.monotonic() - start)
            assert wire.closed()

    threads = [threading.Thread(target=client) for _ in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(ages) == 12 and 0.88 < min(ages) and max(ages) < 3
    assert max(ages) - min(ages) > 0.02, ages  # not all at once


def test_requests_of_a_connection_are_counted(make_gate):
    gate = make_gate("max_requests_per_connection: 3\n")
    with gate.wire() as wire:
        wire.send(upload(gate) * 5)
        replies = [wire.reply() for _ in range(3)]
        assert [r.status for r in replies] == [200] * 3
        assert [r.headers.get("connection") for r in replies] == [None, None, "close"]
        assert wire.closed()
    assert gate.count("flamegate_profiles_accepted_total") == 3


def test_descriptors_run_out(make_gate):
    gate = make_gate(start=False)
    gate.wrapper = ["sh", "-c", 'ulimit -n 160; exec "$@"', "sh"]
    gate.start()
    wires = [gate.wire() for _ in range(200)]
    try:
        for w in wires:
            w.send(upload(gate))
        gate.until(lambda: gate.count("flamegate_accept_held_total") > 0, True)
        time.sleep(0.3)
        assert gate.count("flamegate_accept_errors_total") == 0
        assert gate.log().count("new connections wait") == 1
        served = sum(not isinstance(answer(w, 0.01), Exception) for w in wires)
        assert 50 < served < 130
        for w in wires[:served]:
            w.close()
        for w in wires[served:]:  # in the order that they came
            got = answer(w, 5)
            assert not isinstance(got, Exception) and got.status == 200, got
            w.close()
    finally:
        for w in wires:
            w.close()


def answer(wire, within):
    wire.socket.settimeout(within)
    try:
        return wire.reply()
    except OSError as e:
        return e


def test_shutdown_timeout(make_gate):
    gate = make_gate("shutdown_timeout: 1s\n")
    with gate.wire() as slow:
        slow.send(upload(gate)[:-3])
        gate.until(lambda: gate.count("flamegate_inflight_requests") > 1, True)
        start = time.monotonic()
        gate.process.send_signal(signal.SIGTERM)
        assert gate.process.wait(10) == 0
        gate.process = None
        assert 0.9 < time.monotonic() - start < 3
        assert slow.closed(1)


def test_address_in_use(make_gate):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        gate = make_gate("listen: 127.0.0.1:%d\n" % s.getsockname()[1], start=False)
        done = gate.run("serve")
        assert done.returncode == 1
        assert "cannot listen" in done.stderr and "address already in use" in done.stderr, done.stderr


# --- systemd ---


@pytest.fixture
def notified(make_gate, tmp_path):
    gate = make_gate(start=False)
    box = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    box.bind(str(tmp_path / "notify"))
    box.settimeout(5)
    yield gate, box, str(tmp_path / "notify")
    box.close()


def test_systemd_is_told(notified):
    gate, box, path = notified
    gate.wrapper = ["env", "NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=400000"]
    gate.start()
    assert box.recv(100) == b"READY=1"
    start = time.monotonic()
    assert [box.recv(100) for _ in range(4)] == [b"WATCHDOG=1"] * 4
    assert time.monotonic() - start < 4
    gate.process.send_signal(signal.SIGHUP)
    seen = []
    while b"READY=1" not in seen:
        seen.append(box.recv(100))
    assert any(re.match(rb"RELOADING=1\nMONOTONIC_USEC=\d+$", s) for s in seen), seen
    gate.stop()
    seen = []
    while b"STOPPING=1" not in seen:
        seen.append(box.recv(100))


def test_sockets_of_systemd(make_gate):
    """A socket that systemd keeps open: a connection that comes while nobody is there waits, and is served by the next process."""
    gate = make_gate(start=False)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(100)
        os.set_inheritable(s.fileno(), True)
        script = "import os,sys; os.dup2(%d, 3); os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid())); os.execvp(sys.argv[1], sys.argv[1:])" % s.fileno()
        real = subprocess.Popen

        def popen(*args, **kw):
            return real(*args, **kw, pass_fds=[s.fileno()])

        gate.wrapper = ["/usr/bin/python3", "-c", script]
        subprocess.Popen = popen
        try:
            gate.start()
            assert gate.address == s.getsockname()
            assert gate.ingest(FOLDED, format="folded").status == 200
            gate.stop()
            with gate.wire() as early:
                early.send(upload(gate))
                gate.start()
                assert early.reply().status == 200
            gate.stop()
        finally:
            subprocess.Popen = real


# --- a full disk ---


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 4 MiB."""
    path = tmp_path / "disk"
    path.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(path)], capture_output=True).returncode:
        pytest.skip("needs to mount a file system")
    yield str(path)
    subprocess.run(["umount", "-l", str(path)], check=True)


def fill(disk):
    with open(os.path.join(disk, "filler"), "wb", buffering=0) as f:
        try:
            while f.write(b"\0" * 4096):
                pass
        except OSError:
            pass


@pytest.mark.embedded("its disk is ours")
@pytest.mark.parametrize("originals", ["2GiB", "0B"])
def test_full_disk(make_gate, small_disk, originals):
    gate = make_gate("data_dir: %s\noriginals: {max_bytes: %s}\n" % (small_disk, originals))
    gate.errors_expected = ["."]
    assert gate.ingest(FOLDED, format="folded").status == 200
    fill(small_disk)
    refused = gate.ingest(b"".join(b"main;f%d;%s 1\n" % (i, os.urandom(40).hex().encode()) for i in range(2000)), format="folded")
    assert refused.status == 503 and "retry-after" in refused.headers, refused
    assert refused.headers["content-type"] == "application/json"
    assert gate.count("flamegate_profiles_failed_total") == 1
    assert re.search("No space left on device|disk is full", gate.log())
    gate.until(lambda: gate.request("GET", "/readyz").status, 503)
    assert gate.request("GET", "/healthz").status == 200
    assert gate.get("functions", service="shop")["total"] == 3 * 10**7  # reading needs no space
    os.unlink(os.path.join(small_disk, "filler"))
    assert gate.ingest(FOLDED, format="folded").status == 200
    gate.until(lambda: gate.request("GET", "/readyz").status, 200)
    assert gate.get("functions", service="shop")["total"] == 6 * 10**7
    gate.stop()
    gate.start()
    assert gate.get("functions", service="shop")["total"] == 6 * 10**7


def test_keys_on_a_full_disk(make_gate, small_disk):
    gate = make_gate(start=False, keys=False)
    gate.configure("keys_file: %s/keys.yaml\n" % small_disk)
    key = gate.create("server", "first")
    before = open(small_disk + "/keys.yaml").read()
    fill(small_disk)
    done = gate.run("key", "create", "--name", "second", "--type", "reader")
    assert done.returncode == 1 and done.stdout == "" and "No space" in done.stderr, done
    assert open(small_disk + "/keys.yaml").read() == before
    assert sorted(os.listdir(small_disk)) == ["filler", "keys.yaml"] or sorted(os.listdir(small_disk)) == ["filler", "keys.yaml", "keys.yaml.lock"], os.listdir(small_disk)
    os.unlink(small_disk + "/filler")
    gate.create("reader", "second")
    assert gate.run("key", "list").stdout.count("\n") >= 2 and key


# --- memory ---

FAILING_MALLOC = r"""
#define _GNU_SOURCE
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
static uintptr_t from, to;
static int find(struct dl_phdr_info *i, size_t n, void *arg)
{
    for (int k = 0; k < i->dlpi_phnum; k++)
        if (i->dlpi_phdr[k].p_type == PT_LOAD && (i->dlpi_phdr[k].p_flags & PF_X)) {
            from = i->dlpi_addr + i->dlpi_phdr[k].p_vaddr;
            to = from + i->dlpi_phdr[k].p_memsz;
        }
    return 1; /* the program is the first */
}
__attribute__((constructor)) static void start(void) { dl_iterate_phdr(find, NULL); }
/* One call of the program's own in a hundred fails, while the file is there: what libraries do without memory is theirs to say. */
static int fails(void *caller)
{
    static __thread uint32_t x = 2463534242u;
    uintptr_t p = (uintptr_t)caller;
    if (p < from || p >= to)
        return 0;
    x ^= x << 13, x ^= x >> 17, x ^= x << 5;
    return x % 100 == 0 && access(getenv("FAIL_WHILE"), F_OK) == 0;
}
void *malloc(size_t n) { return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(n); }
void *calloc(size_t a, size_t b) { return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(a, b); }
void *realloc(void *p, size_t n) { return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(p, n); }
"""


@pytest.mark.skipif(SANITIZED, reason="sanitizers have a malloc of their own")
def test_memory_runs_out_now_and_then(make_gate, tmp_path):
    """Every hundredth allocation fails under load: no crash, no hang, no 4xx for good bodies, books that balance, and all is well again afterwards."""
    write(tmp_path / "fail.c", FAILING_MALLOC)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", str(tmp_path / "fail.so"), str(tmp_path / "fail.c")], check=True)
    gate = make_gate(start=False)
    gate.errors_expected = ["."]
    gate.wrapper = ["env", "LD_PRELOAD=%s" % (tmp_path / "fail.so"), "FAIL_WHILE=%s" % (tmp_path / "now")]
    gate.start()
    pprof, many = simple().gz(), b"".join(b"main;f%d;g%d 1\n" % (i, i % 50) for i in range(3000))
    sends = [
        lambda: gate.ingest(pprof),
        lambda: gate.ingest(many, format="folded"),
        lambda: gate.push(push([({"service_name": "shop", "__name__": "process_cpu"}, [pprof] * 5)])),
        lambda: gate.read("functions", service="shop"),
        lambda: gate.read("flamegraph", service="shop"),
    ]
    write(tmp_path / "now", "")
    statuses, until = {}, time.monotonic() + 3

    def client(n):
        i = 0
        while time.monotonic() < until:
            i += 1
            try:
                reply = sends[i % len(sends)]()
                if i % 10 == 0:
                    gate.process.send_signal(signal.SIGHUP)
                statuses[reply.status] = statuses.get(reply.status, 0) + 1
            except (OSError, EOFError, http.client.HTTPException):
                statuses["cut"] = statuses.get("cut", 0) + 1

    threads = [threading.Thread(target=client, args=(n,)) for n in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    os.unlink(tmp_path / "now")
    assert gate.process.poll() is None, gate.log()[-3000:]
    assert statuses.get(200, 0) > 20 and statuses.get(503, 0) > 0, statuses
    assert not [s for s in statuses if isinstance(s, int) and 400 <= s < 500 and s not in (401,)], statuses
    assert gate.ingest(FOLDED, format="folded").status == 200
    assert gate.get("functions", service="shop")["total"] > 0
