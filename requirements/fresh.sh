#!/bin/sh
# Install the lock files as a fresh machine does: with the oldest pip that comes with each supported Python, an empty home and no
# cache. Nothing is kept, but everything is fetched and compared with its hash. Usage: fresh.sh WORDS OF PIP BEFORE A LOCK
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/home"

checked=
for pair in python3.11:22.3 python3.12:23.2.1 python3.13:24.2; do
    python=${pair%:*} pip=${pair#*:}
    "$python" -c '' 2>/dev/null || continue
    "$python" -m venv "$work/$python"
    "$work/$python/bin/python" -m pip --disable-pip-version-check -qq install "pip==$pip" 2>/dev/null
    for lock in requirements/dev.lock requirements/docs.lock; do
        HOME=$work/home "$work/$python/bin/python" -m pip --disable-pip-version-check -qq --no-cache-dir "$@" "$lock" --dry-run ||
            { echo "$lock does not install with pip $pip, which comes with $python" >&2; exit 1; }
    done
    checked="$checked $python with pip $pip;"
done
[ -n "$checked" ] || { echo "No Python from 3.11 to 3.13 starts here" >&2; exit 1; }
echo "The locks install on an empty machine:${checked%;}"
