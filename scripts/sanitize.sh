#!/usr/bin/env bash
# The tests of the engine under AddressSanitizer: an address outside of a value, read or written by a register kernel,
# ends them. Every instruction set of this processor is run. Needs a nightly tool chain:
#
#   rustup toolchain install nightly --profile minimal
#   scripts/sanitize.sh
#
# Tiles of AMX are assembler, which the sanitizer does not see.
set -euo pipefail
cd "$(dirname "$0")/.."
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/sanitized
cargo +nightly test --release --locked -p mithras-kernels --lib --target "$host"
