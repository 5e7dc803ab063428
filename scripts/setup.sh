#!/usr/bin/env bash
# Installs what the tests and the training build need, once: a Python environment with libtorch,
# ONNX Runtime, OpenSlide and the yardsticks. Prints the environment's folder on its last line.
# The environment lies in $MITHRAS_VENV, else in ~/.cache/mithras/, named after the requirements.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v cc >/dev/null || ! command -v c++ >/dev/null; then
    apt-get update -qq && apt-get install -y -qq build-essential
fi
python=$(command -v python3.11 || command -v python3)
if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    apt-get update -qq && apt-get install -y -qq python3-venv python3-pip
fi

digest=$(sha256sum scripts/requirements.txt | cut -c1-12)
venv=${MITHRAS_VENV:-$HOME/.cache/mithras/venv-$digest}
if [ ! -e "$venv/.complete-$digest" ]; then
    echo "setting up $venv (libtorch is about 4.6 GB) ..." >&2
    "$python" -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --retries 5 -r scripts/requirements.txt >&2
    touch "$venv/.complete-$digest"
fi
echo "$venv"
