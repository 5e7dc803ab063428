#!/usr/bin/env bash
# docs/results/reliability.md: an hour of attacks, and the old faults on the commit that had them.
#
#   scripts/reproduce/reliability.sh [BINARY]        (default: target/debug/mithras, a training build)
set -euo pipefail
cd "$(dirname "$0")/../.."
scripts/attack.sh --minutes 60 --seed 3 --binary "${1:-target/debug/mithras}"

before=${TMPDIR:-/tmp}/mithras-before
[ -e "$before" ] || git worktree add "$before" 3c3eb32
(cd "$before" && cargo build --release)
# Ends with an error: that commit fails every one of them.
scripts/attack.sh --only faults --binary "$before/target/release/mithras" || true
