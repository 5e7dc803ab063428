#!/usr/bin/env bash
# Every speed as a ratio to its peer in the same run, held against the committed table benches/ratios.json.
#
#   benches/all.sh FRAMES [--only NAME,NAME] [--write]
#
# Fails when a ratio has fallen by 20 % or more. --write puts the new ratios into the table. FRAMES: H&E frames at
# 0.2456 um/px (ICPR 2012, Aperio). Run it on an idle machine, before each change of a hot path lands. First:
# scripts/setup.sh, and pip install -r benches/requirements.txt; a peer that is missing is skipped by name.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { sed -n '2,/^set/p' "$0" | sed '$d' | cut -c3- >&2; exit 2; }
cargo build --release --locked -p mithras-cli
cargo build --release --locked -p mithras-mitosis --example hotspot_speed
cargo build --release --locked -p mithras-regions --example tissue_speed
cargo build --release --locked -p mithras-crops --example read_speed
LIBTORCH_USE_PYTORCH=1 cargo build --release --locked -p mithras-net --example bench
exec python3 benches/all.py "$@"
