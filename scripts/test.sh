#!/usr/bin/env bash
# Every check of the project: format, lints, docs, tests. Installs what they need (scripts/setup.sh).
# `--no-wheel` leaves out the Python wheel.
set -euo pipefail
cd "$(dirname "$0")/.."
wheel=yes
[ "${1:-}" != --no-wheel ] || wheel=no

target=${CARGO_TARGET_DIR:-target}
logs=$target/checks
mkdir -p "$logs"
# Mostly run once, on a machine that has built nothing.
export CARGO_INCREMENTAL=0
# Lints are looked for and pages are made while crates are built: passes of their own would check every crate, and each
# that it depends on, once more.
export RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/compile.sh CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings
mkdir -p "$target/pages"
MITHRAS_PAGES=$(realpath "$target/pages")
export MITHRAS_PAGES
cores=$(getconf _NPROCESSORS_ONLN)

# Seconds since the start, so that a log shows what the time goes into.
step() { printf '\n== %s (%s s)\n' "$*" "$SECONDS"; }

# in_background NAME COMMAND...: starts a step that runs while others do; ended NAME waits for it and prints its log.
declare -A running
in_background() {
    local name=$1
    shift
    "$@" >"$logs/$name.log" 2>&1 &
    running[$name]=$!
}
ended() {
    local code=0
    wait "${running[$1]}" || code=$?
    unset "running[$1]"
    step "$1"
    [ $code -eq 0 ] && tail -n 5 "$logs/$1.log" || cat "$logs/$1.log"
    return $code
}
at_exit() {
    [ ${#running[@]} -eq 0 ] || kill "${running[@]}" 2>/dev/null || true
    [ -z "${in_memory:-}" ] || rm -rf "$in_memory"
}
trap at_exit EXIT

# The first time it loads 5 GB; the program that most users have is built without libtorch.
in_background setup scripts/setup.sh

step "format"
cargo fmt --all --check

step "program"
# Most tests of the command line take it. Of the crates that the tests are built on, none is built again for it.
cargo build --locked -p mithras-cli -p mithras-python --bin mithras --features mithras-python/as-tested
mkdir -p "$target/plain"
cp "$target/debug/mithras" "$target/plain/mithras"
MITHRAS_TEST_PROGRAM=$(realpath "$target/plain/mithras")
export MITHRAS_TEST_PROGRAM

ended setup
venv=$(tail -n 1 "$logs/setup.log")
export VIRTUAL_ENV=$venv PATH="$venv/bin:$PATH" LIBTORCH_USE_PYTORCH=1
unset PYTHONHOME
# Tests run side by side; libtorch's threads would spin for the same cores (three times as long in all).
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE
# The same state gives the same answer. Without it property tests draw other cases in every run.
export PROPTEST_RNG_SEED=1

# They need that program alone, and use the cores that compilers leave idle.
in_background attack scripts/attack.sh --minutes 1 --binary "$MITHRAS_TEST_PROGRAM"
in_background "odd files" "$venv/bin/python" scripts/oddities.py check --binary "$MITHRAS_TEST_PROGRAM"

# While the tests run, which wait for browsers and files, too; cargo is free then.
doctests_and_wheel() {
    sleep 30
    cargo test --workspace --doc --features mithras-cli/train --locked
    [ $wheel = no ] || MITHRAS_PAGES='' scripts/wheel.sh --profile dev --out "$target/wheels"
}
# `--quick` leaves out training a detector.
site() {
    python3 scripts/site_test.py && scripts/site.py --quick --binary "$target/trains/mithras"
}

step "lints, pages, and tests are built"
cargo build --workspace --all-targets --features mithras-cli/train --locked
mkdir -p "$target/trains"
cp "$target/debug/mithras" "$target/trains/mithras"
MITHRAS_TEST_TRAINS=$(realpath "$target/trains/mithras")
export MITHRAS_TEST_TRAINS

step "tests"
# Tests write thousands of small files that are synced to disk, and delete them: in memory where that has room.
free=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo 2>/dev/null || echo 0)
room=$(df -k --output=avail /dev/shm 2>/dev/null | tail -n 1 || echo 0)
if [ -z "${TMPDIR:-}" ] && [ "$free" -ge 16 ] && [ "$room" -ge $((8 << 20)) ]; then
    in_memory=$(mktemp -d /dev/shm/mithras-tests.XXXXXX)
    export TMPDIR=$in_memory
fi
in_background site site
if cargo nextest --version >/dev/null 2>&1; then
    in_background "doctests, wheel" doctests_and_wheel
    # One more than cores: many wait for a browser or a disk.
    cargo nextest run --workspace --features mithras-cli/train --locked --no-fail-fast --test-threads $((cores + 1))
else
    cargo test --workspace --lib --bins --tests --features mithras-cli/train --locked --no-fail-fast
    in_background "doctests, wheel" doctests_and_wheel
fi
ended "odd files"
ended attack
ended site
ended "doctests, wheel"
