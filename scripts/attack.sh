#!/usr/bin/env bash
# Attacks a build of mithras: mutated files of every kind that it reads, kills and resumption, a full
# disk, two processes at once, the review server. Prints one table and fails on any panic, hang,
# excess of memory or silent change.
#
#   scripts/attack.sh [--minutes N] [--binary PATH] [--seed N] [--data FOLDER]
#
# Without --binary the release build is used, and made where it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
case " $* " in
*" --binary "*) ;;
*)
    cargo build --release --locked -p mithras-cli
    set -- "$@" --binary "${CARGO_TARGET_DIR:-target}/release/mithras"
    ;;
esac
exec python3 scripts/attack "$@"
