#!/usr/bin/env bash
# docs/results/paper.md: an experiment on public data, with its report.
#
#   DATA=DIR ENCODERS=DIR scripts/reproduce/paper.sh [ID] [OUT]      (default: subtypes-public, runs/paper)
#
# ID: subtypes-public | classification-public | detection-public | ablation-public | noise-public | timing-public |
# public (all six).
# DATA is the folder of data sets, ENCODERS that of starting weights (`mithras experiment show ID` lists both; a row
# without weights stays empty).
# THREADS: threads of each step (default 1). Give the same command again to continue. Needs the training build on PATH.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${DATA:?set DATA to the folder of data sets}" "${ENCODERS:?set ENCODERS to the folder of starting weights}"
mithras experiment run "${1:-subtypes-public}" --data "$DATA" --encoders "$ENCODERS" --out "${2:-runs/paper}" --jobs 1 \
    --threads "${THREADS:-1}" --device cpu
