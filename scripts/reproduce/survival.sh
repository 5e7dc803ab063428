#!/usr/bin/env bash
# docs/results/survival.md: golden values against R, the benchmark against peers, and TCGA-THCA.
#
#   scripts/reproduce/survival.sh [TCGA-CDR_THCA.csv]
#
# Needs cargo; for the benchmark R with `survival`, lifelines and scikit-survival.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo test -p mithras-stats
python3 benches/peer/survival.py --replicates 8
if [ $# = 1 ]; then
    mithras survival cox --table "$1" --time OS.time --event OS --covariates age_at_initial_pathologic_diagnosis,gender
    mithras survival logrank --table "$1" --time OS.time --event OS --covariates gender
fi
