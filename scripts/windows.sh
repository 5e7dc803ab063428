#!/usr/bin/env bash
# Checks that the program and its libraries compile for Windows: `cargo check` of the default members for
# x86_64-pc-windows-gnu, C parts with Debian's mingw-w64. Nothing is linked and nothing runs: that the program works there is
# not tested by this.
#
#   scripts/windows.sh [--install] [ARGUMENTS OF cargo check]
#
# `--install` fetches what is missing (rustup target, apt package). Without it, and where something is missing, the check is
# skipped aloud with exit code 0; with CI set, with 1.
set -euo pipefail
cd "$(dirname "$0")/.."

target=x86_64-pc-windows-gnu
if [ "${1:-}" = --install ]; then
    shift
    rustup target add "$target"
    command -v x86_64-w64-mingw32-gcc >/dev/null || { apt-get update -qq && apt-get install -y -qq gcc-mingw-w64-x86-64; }
fi
missing=()
rustup target list --installed 2>/dev/null | grep -qx "$target" || missing+=("the Rust target $target")
command -v x86_64-w64-mingw32-gcc >/dev/null || missing+=("x86_64-w64-mingw32-gcc")
if [ ${#missing[@]} -gt 0 ]; then
    printf 'SKIPPED: whether it compiles for Windows was not checked; missing: %s (scripts/windows.sh --install)\n' "$(IFS=,; echo "${missing[*]}")" >&2
    [ -z "${CI:-}" ]
    exit
fi
# By itself, so that a build for this machine is not disturbed.
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/windows nice cargo check --locked --target "$target" "$@"
echo "the default members compile for $target"
