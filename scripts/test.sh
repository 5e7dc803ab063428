#!/usr/bin/env bash
# Every check of the project: format, lints, docs, tests. Installs what they need (scripts/setup.sh).
# `--no-wheel` leaves out the Python wheel.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=$(scripts/setup.sh | tail -n 1)
export VIRTUAL_ENV=$venv PATH="$venv/bin:$PATH" LIBTORCH_USE_PYTORCH=1
unset PYTHONHOME

step() { printf '\n== %s\n' "$*"; }

step "format"
cargo fmt --all --check

step "lints"
cargo clippy --workspace --all-targets --features mithras-cli/train --locked -- -D warnings

step "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --features mithras-cli/train --locked

step "doctests"
cargo test --workspace --doc --features mithras-cli/train --locked

# Tests run side by side, one to a core; libtorch's threads would spin for the same cores (three times
# as long in all).
export OMP_NUM_THREADS=1

step "tests"
# Most tests of the command line take the program that most users have, built without training. Of the crates that
# the tests are built on, none is built again for it.
target=${CARGO_TARGET_DIR:-target}
cargo build --locked -p mithras-cli -p mithras-python --bin mithras --features mithras-python/as-tested
mkdir -p "$target/plain"
cp "$target/debug/mithras" "$target/plain/mithras"
MITHRAS_TEST_PROGRAM=$(realpath "$target/plain/mithras")
export MITHRAS_TEST_PROGRAM
if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --workspace --features mithras-cli/train --locked --no-fail-fast
else
    cargo test --workspace --lib --bins --tests --features mithras-cli/train --locked --no-fail-fast
fi

# A minute of the campaigns of scripts/attack.sh, on the binary that the tests have just used, and next to it, on the
# other core, links, commands and quoted errors of all pages, and the tutorials; `--quick` leaves out training a
# detector.
step "attack and site"
binary=$target/debug/mithras log=$target/attack.log
scripts/attack.sh --minutes 1 --binary "$MITHRAS_TEST_PROGRAM" >"$log" 2>&1 &
attack=$!
trap 'kill $attack 2>/dev/null || true' EXIT
python3 scripts/site_test.py
scripts/site.py --quick --binary "$binary"
"$venv/bin/python" scripts/oddities.py check --binary "$MITHRAS_TEST_PROGRAM"
wait $attack || { cat "$log"; exit 1; }
trap - EXIT
tail -n 3 "$log"

if [ "${1:-}" != --no-wheel ]; then
    step "wheel"
    scripts/wheel.sh --profile dev --out "$target/wheels"
fi
