#!/bin/sh
# Make an environment with the newest or the lowest releases of what the library stands on, and the test tools.
# Usage: resolve.sh UV PYTHON highest|lowest-direct ENVIRONMENT
set -eu
uv=$1 python=$2 resolution=$3 environment=$4
cd "$(dirname "$0")/.."

# With pip: tests install packages, and the local model downloads its own by pip.
"$uv" venv --quiet --clear --seed --python "$python" "$environment"
# Only the library's own requirements are taken at their lowest; the test tools stay new.
"$uv" pip compile --quiet --upgrade --python "$python" --resolution "$resolution" --no-header --no-annotate \
    --output-file "$environment/constraints.txt" pyproject.toml
"$uv" pip install --quiet --python "$environment/bin/python" --constraint "$environment/constraints.txt" \
    --group build --group test --editable ".[all,testing]"
grep -E '^(langchain|langgraph)' "$environment/constraints.txt"
