#!/bin/sh
# Resolve the dependencies into lock files that name versions and hashes, and no place to download from.
set -eu
uv=$1
shift
cd "$(dirname "$0")/.."

compile() {
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate "$@"
}

compile --all-extras --group build --group dev "$@" --output-file requirements/dev.lock pyproject.toml
compile --extra cli --extra local --extra sandbox --group build --constraint requirements/dev.lock --output-file requirements/run.lock pyproject.toml
compile --extra cli --extra local --extra sandbox --extra server --group build --constraint requirements/dev.lock --output-file requirements/serve.lock pyproject.toml
# One of these packages asks for an older interpreter than ours.
sed '/^pydantic-monty==/,/[^\\]$/d' requirements/dev.lock |
    compile --constraint - --no-emit-package deepagents "$@" --output-file requirements/third-party.lock requirements/third-party.in
# Read and not run, so without what they require, and for whatever Python they are written.
"$uv" pip compile --quiet --no-deps --python-version 3.13 --generate-hashes --no-header --no-annotate "$@" --output-file requirements/scanned.lock requirements/scanned.in
compile --group docs --constraint requirements/dev.lock "$@" --output-file requirements/docs.lock
