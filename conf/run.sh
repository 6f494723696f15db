#!/bin/sh
# What `make run` ends in: a gateway in the foreground, on the defaults (or FLAMEGATE_CONFIG). On the first start it makes a key
# that sends and a key that reads, and prints both once, inside of two lines to paste. Usage: conf/run.sh BINARY
set -eu
flamegate=$1

# The defaults keep everything in ./data; with a configuration of one's own, keys are one's own affair as well.
first=
if [ -z "${FLAMEGATE_CONFIG:-}" ] && [ ! -e data/keys.yaml ]; then
    mkdir -p data
    chmod 700 data
    server=$("$flamegate" key create --name first-server --type server 2>/dev/null) || { echo "a key could not be made in data/keys.yaml" >&2; exit 1; }
    reader=$("$flamegate" key create --name first-reader --type reader 2>/dev/null) || { rm -f data/keys.yaml; echo "a key could not be made in data/keys.yaml" >&2; exit 1; }
    first=1
fi

say_how() {
    # Ready when /readyz says so; a gateway that does not come up says why by itself.
    for _ in $(seq 300); do
        sleep 0.1
        kill -0 $$ 2>/dev/null || return 0 # before it is asked: another one may have the port
        if curl -fso /dev/null http://127.0.0.1:4040/readyz; then break; fi
    done
    cat <<LINES

Flamegate is running. Paste this to send a real profile (py-spy's, of a Python program):

  curl -s -w '%{http_code}\n' -u :$server --data-binary @$(pwd)/test/corpus/curl-py-spy-0.4.3/001.body 'http://127.0.0.1:4040/pyroscope/ingest?name=busy&format=folded&sampleRate=100&spyName=pyspy'

and this to see where its time went:

  curl -s -u :$reader 'http://127.0.0.1:4040/api/v1/overview?service=busy&format=text'

These keys are not shown again; \`$flamegate key create\` makes others. Ctrl-C ends it.

LINES
}

[ -z "$first" ] || say_how &
exec "$flamegate" serve
