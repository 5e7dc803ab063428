#!/usr/bin/env bash
# The fast check, for every commit: format, words, lints and unit tests of the default crates. Needs Rust and a C
# compiler, Python 3 without packages for words and links, and neither libtorch nor data. scripts/test.sh is the whole
# check.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

step "format"
cargo fmt --all --check

step "words"
python3 scripts/words.py --check
python3 scripts/site_test.py
python3 scripts/site.py --only links | grep -v '^  http'

step "lints"
cargo clippy --all-targets --locked -- -D warnings

step "unit tests"
if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --lib --bins --locked
else
    cargo test --lib --bins --locked
fi
