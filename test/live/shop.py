"""A small shop under pyroscope-io: slow_function does three times the work of fast_function. Prints what it measured itself."""

import json
import os
import sys
import time

import pyroscope

url, key, seconds = os.environ["FLAMEGATE_URL"], os.environ["FLAMEGATE_KEY"], float(os.environ["SECONDS"])
ENOUGH = 4  # seconds of CPU, on a machine that has other things to do
name, newest = sys.argv[1], sys.argv[2] == "newest"
login = {"basic_auth_username": "live", "basic_auth_password": key} if newest else {"auth_token": key}
pyroscope.configure(application_name=name, server_address=url, sample_rate=100, oncpu=True, gil_only=True, tags={"env": "live"}, **login)


def slow_function(n):
    total = 0
    for i in range(3 * n):
        total ^= i & 7
    return total


def fast_function(n):
    total = 0
    for i in range(n):
        total ^= i & 7
    return total


def measured(function, n):
    start = time.thread_time()
    function(n)
    return time.thread_time() - start


spent = {"slow_function": 0.0, "fast_function": 0.0}
end = time.monotonic() + seconds
while time.monotonic() < end or sum(spent.values()) < ENOUGH and time.monotonic() < end + 30:
    spent["fast_function"] += measured(fast_function, 500_000)
    spent["slow_function"] += measured(slow_function, 500_000)
pyroscope.shutdown()
print(json.dumps(spent))
