#!/usr/bin/env bash
# Seals the run that this version of the program leaves of the drawn slide. Later versions have to continue it
# (crates/cli/tests/upgrading.rs, `SEALED`).
#   scripts/seal_run.sh PROGRAM NAME
# writes crates/cli/tests/golden/NAME/run. A sealed run is never made again.
set -euo pipefail
program=$(realpath "$1") root=$(realpath "$(dirname "$0")/..")
golden=$root/crates/cli/tests/golden
into=$golden/$2/run
[ ! -e "$into" ] || { echo "$into is sealed already" >&2; exit 1; }
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
cd "$at"
cp "$golden/release-0.1.0/one.tiff" .
cp -r "$root/crates/infer/tests/golden/tiny" model
printf 'slide,case\none.tiff,K1\n' >list.csv
"$program" detect --list list.csv --model model --engine rten --threads 1 -q --operating-point 0.3,0 --out run
# The page is made again by `gather`, the locks by the verbs that need them.
find run \( -name summary.html -o -name '.lock' \) -delete
sed -i "s#$at/##g; s#$program#mithras#g" run/run.json run/.runs/*.json run/one/state.json
mkdir -p "$golden/$2"
cp -r run "$into"
du -sb "$into"
