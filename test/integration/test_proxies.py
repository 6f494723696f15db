"""
The bytes of hostile_table.py through a real HAProxy and a real nginx in front: the gateway never sees a request that the proxy did not
count, and no upload behind a row arrives that the proxy did not forward as a request of its own. Connections to the gateway are shared
between clients, so a request that was read two ways would show up in somebody else's. Then both proxies with the PROXY protocol.
"""

import concurrent.futures
import os
import re
import socket
import subprocess
import time

import pytest

from gate import ROOT, Wire
from hostile_table import TABLE, get, sized

NGINX = """
daemon off; master_process off; error_log stderr crit; pid %(dir)s/nginx.pid;
events { worker_connections 1024; }
http {
    log_format forwarded '$upstream_status|$upstream_addr|$request';
    client_body_temp_path %(dir)s/t; proxy_temp_path %(dir)s/t; fastcgi_temp_path %(dir)s/t; uwsgi_temp_path %(dir)s/t; scgi_temp_path %(dir)s/t;
    client_header_timeout 1s; client_body_timeout 1s; keepalive_timeout 1s; client_max_body_size 32m; large_client_header_buffers 4 64k;
    proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_next_upstream off;
    upstream gate { server 127.0.0.1:%(gate)d; keepalive 16; }
    server { listen 127.0.0.1:%(one)d; access_log %(dir)s/one.log forwarded; location / { proxy_pass http://gate; } }
    server {
        listen 127.0.0.1:%(two)d; access_log %(dir)s/two.log forwarded;
        ignore_invalid_headers off; underscores_in_headers on; merge_slashes off; proxy_request_buffering off;
        location / { proxy_pass http://gate; }
    }
}
"""
STREAM = """
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
daemon off; master_process off; error_log stderr crit; pid %(dir)s/nginx.pid;
events { worker_connections 64; }
stream { server { listen 127.0.0.1:%(one)d; proxy_pass 127.0.0.1:%(gate)d; proxy_protocol on; } }
"""


def haproxy_conf(more, fronts):
    """The defaults of conf/haproxy.cfg, with what a test needs: short times for clients, and a log."""
    with open(os.path.join(ROOT, "conf/haproxy.cfg")) as f:
        defaults = "defaults\n" + f.read().split("\ndefaults\n", 1)[1].split("\n\n", 1)[0]
    defaults = re.sub(r"timeout client .*", "timeout client 1s", defaults)
    # One thread: several that log at once to a file lose lines.
    return "global\n    nbthread 1\n" + defaults + "\n    timeout http-request 1s\n    log stdout format raw local0\n    maxconn 500\n" + more + "\n" + "\n".join(fronts) + "\n"


def free_ports(n):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


@pytest.fixture
def proxy(tmp_path):
    """Starts a proxy with a configuration and waits until it listens; its output is in `out`."""
    running = []

    def start(command, text, *ports):
        file = tmp_path / "proxy.conf"
        file.write_text(text)
        os.makedirs(tmp_path / "t", exist_ok=True)
        with open(tmp_path / "out", "wb") as out:
            running.append(subprocess.Popen([*command, str(file)], stdout=out, stderr=subprocess.STDOUT))
        for port in ports:
            until = time.monotonic() + 10
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert running[-1].poll() is None and time.monotonic() < until, (tmp_path / "out").read_text()
                    time.sleep(0.02)

    yield start
    for p in running:
        p.terminate()
        p.wait(10)


HAPROXY, NGINX_COMMAND = ["haproxy", "-db", "-f"], ["nginx", "-e", "stderr", "-c"]


def send_row(gate, port, number, raw):
    """A row and the upload behind it, all in one packet; reads until the proxy closes."""
    behind = sized("Connection: close", target="/ingest?name=behind%d" % number)
    with Wire(("127.0.0.1", port), 4) as wire:
        try:
            wire.send((raw + behind).replace(b"@KEY", gate.key.encode()).replace(b"@READER", gate.reader.encode()))
            while wire.socket.recv(1 << 16):
                pass
        except OSError:
            pass


def compare(gate, port, log):
    """All rows through one front: what it says that it forwarded, and what the gateway saw. `log`: its lines, (status, request line)."""

    def requests():
        m = gate.metrics()
        return m["flamegate_requests_received_total"] - gate.count("flamegate_requests_total", m, route="metrics") - gate.count("flamegate_inflight_requests", m)

    def stored():
        return {s["service"] for s in gate.get("services", limit=10000)["services"]}

    lines = len(log())
    seen = requests()
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda row: send_row(gate, port, port * 1000 + row[0], row[1][1]), enumerate(TABLE)))
    assert gate.settled() == {}
    gate.until(lambda: len(log()) - lines - (requests() - seen), 0)  # forwarded, and seen; a log may be late
    forwarded = log()[lines:]
    counted = {m.group(1) for status, line in forwarded if status == "200" for m in [re.search(r"name=(behind%d\d+) " % port, line)] if m}
    arrived = {s for s in stored() if s.startswith("behind%d" % port)}
    assert arrived == counted
    assert len(arrived) > 50 and len(forwarded) < 2 * len(TABLE)
    assert gate.count("flamegate_requests_total", code="500") == 0


def test_haproxy(make_gate, proxy, tmp_path):
    gate = make_gate()
    one, two = free_ports(2)
    backend = "backend gate\n    http-reuse always\n    server g 127.0.0.1:%d" % gate.address[1]
    front = "frontend f%d\n    bind 127.0.0.1:%d\n    log-format \"@%%fp|%%ST|%%s|%%Tc|%%{+Q}r\"\n    default_backend gate\n    %s"
    proxy(HAPROXY, haproxy_conf("", [backend, front % (1, one, ""), front % (2, two, "option accept-invalid-http-request")]), one, two)
    for port in (one, two):
        def log():
            return re.findall(r"@%d\|(\d+)\|g\|\d+\|(.*)" % port, (tmp_path / "out").read_text(errors="replace"))  # -1: no connection was needed

        compare(gate, port, log)


def test_nginx(make_gate, proxy, tmp_path):
    gate = make_gate()
    one, two = free_ports(2)
    proxy(NGINX_COMMAND, NGINX % {"dir": tmp_path, "gate": gate.address[1], "one": one, "two": two}, one, two)
    for port, name in ((one, "one.log"), (two, "two.log")):
        def log():
            lines = (tmp_path / name).read_text(errors="replace").splitlines()
            return [(status, line) for status, address, line in (l.split("|", 2) for l in lines) if address != "-"]

        compare(gate, port, log)


ASK = get("/ingest?name=x", "Connection: close", "X-Forwarded-For: 1.1.1.1")  # is refused, and logged with its client


def client_of(gate, port, raw=ASK, source="127.0.0.9"):
    """Whom the gateway takes for the client of a connection from `source` through a proxy."""
    s = socket.create_connection(("127.0.0.1", port), 5, (source, 0))
    s.sendall(raw.replace(b"@KEY", gate.key.encode()))
    answer = b""
    while data := s.recv(1 << 16):
        answer += data
    s.close()
    assert answer.startswith(b"HTTP/1.1 405"), answer
    return re.findall(r"refused.* client=\"?([^\s\"]+)", gate.log())[-1]


PROXIED = "listen: { address: '127.0.0.1:0', proxy_protocol: true }\nlog: {level: debug, fold: 0s}\n"


@pytest.mark.parametrize("send", ["send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options unique-id,crc32c"])
@pytest.mark.parametrize("mode", ["http", "tcp"])
def test_haproxy_sends_proxy_headers(make_gate, proxy, send, mode):
    gate = make_gate(PROXIED)
    port, = free_ports(1)
    front = "listen f\n    mode %s\n    bind 127.0.0.1:%d\n    unique-id-format %%rt\n    server g 127.0.0.1:%d %s check inter 100ms" % (mode, port, gate.address[1], send)
    proxy(HAPROXY, haproxy_conf("    option %slog" % mode, [front]), port)
    assert client_of(gate, port) == "127.0.0.9"
    assert client_of(gate, port, source="127.0.0.10") == "127.0.0.10"
    assert gate.count("flamegate_requests_total", route="ingest") == 2


def test_nginx_sends_proxy_headers(make_gate, proxy, tmp_path):
    gate = make_gate(PROXIED)
    port, = free_ports(1)
    proxy(NGINX_COMMAND, STREAM % {"dir": tmp_path, "gate": gate.address[1], "one": port}, port)
    assert client_of(gate, port) == "127.0.0.9"


def test_both_name_the_client_in_a_header(make_gate, proxy, tmp_path):
    """X-Forwarded-For as they send it, with what the client says of itself to the left."""
    gate = make_gate("trusted_proxies: [127.0.0.1]\nlog: {level: debug, fold: 0s}\n")
    one, two, three = free_ports(3)
    proxy(NGINX_COMMAND, NGINX % {"dir": tmp_path, "gate": gate.address[1], "one": one, "two": two}, one, two)
    assert client_of(gate, one) == "127.0.0.9"
    proxy(HAPROXY, haproxy_conf("    option forwardfor", ["listen f\n    bind 127.0.0.1:%d\n    server g 127.0.0.1:%d" % (three, gate.address[1])]), three)
    assert client_of(gate, three) == "127.0.0.9"
    # A chain: HAProxy in front of nginx, which is trusted, too.
    proxy(HAPROXY, haproxy_conf("    option forwardfor", ["listen f\n    bind 127.0.0.1:%d\n    server g 127.0.0.1:%d" % (port := free_ports(1)[0], one)]), port)
    assert client_of(gate, port) == "127.0.0.9"
