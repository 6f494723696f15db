"""Certificates as the openssl command makes them: an authority in a folder, and what it signs."""

import os
import ssl
import subprocess

from gate import Wire


def openssl(*args, **kw):
    return subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True, timeout=30, **kw)


class Authority:
    def __init__(self, folder, name):
        self.dir, self.name = str(folder), name
        self.cert, self.key = (os.path.join(self.dir, name + end) for end in (".ca.pem", ".ca.key"))
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.key, "-out", self.cert,
                "-days", "30", "-subj", "/CN=" + name)

    def sign(self, name, days=30, kind=("ec", "ec_paramgen_curve:P-256")):
        """(certificate, key) for localhost."""
        cert, key, request = (os.path.join(self.dir, name + end) for end in (".pem", ".key", ".csr"))
        openssl("req", "-newkey", kind[0], "-pkeyopt", kind[1], "-nodes", "-keyout", key, "-out", request, "-subj", "/CN=" + name)
        extension = os.path.join(self.dir, name + ".ext")
        with open(extension, "w") as f:
            f.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial", "-out", cert, "-days", days,
                "-extfile", extension)
        return cert, key


def client(authority, cert=None, alpn=("http/1.1",), version=None):
    context = ssl.create_default_context(cafile=authority.cert)
    if version:
        context.minimum_version = context.maximum_version = version
    if alpn:
        context.set_alpn_protocols(list(alpn))
    if cert:
        context.load_cert_chain(*cert)
    return context


class SecureWire(Wire):
    """A raw connection inside TLS; `before` goes out ahead of the handshake."""

    def __init__(self, address, context, timeout=15, before=b""):
        super().__init__(address, timeout)
        if before:
            self.socket.sendall(before)
        try:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        except BaseException:
            self.socket.close()
            raise
