#!/bin/sh
# All checks of `make lint`; each prints what it objects to. Run from the top of the tree.
failed=0
for check in includes libraries banned sizes format; do
    test/lint/$check.sh || { echo "lint: $check failed" >&2; failed=1; }
done
exit $failed
