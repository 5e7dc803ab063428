#!/usr/bin/env bash
# The compiler of scripts/test.sh (RUSTC_WORKSPACE_WRAPPER): Clippy's driver, and then rustdoc for what has pages.
# `cargo doc` would first check every crate of others once more; here it takes those that are built anyway. Pages go
# below MITHRAS_PAGES; where that is empty none are made.
set -euo pipefail
clippy-driver "$@"
[ -n "${MITHRAS_PAGES:-}" ] || exit 0

# Libraries; neither tests nor build scripts, nor programs, whose comments are their help.
name= library=no
arguments=()
shift
while [ $# -gt 0 ]; do
    case $1 in
    --test | -) exit 0 ;;
    --emit=*) ;;
    --out-dir | -l) shift ;;
    -C)
        [[ $2 == incremental=* ]] || arguments+=("$1" "$2")
        shift
        ;;
    *)
        case $1 in
        --crate-name) name=$2 ;;
        --crate-type) [ "$2" = bin ] || library=yes ;;
        esac
        arguments+=("$1")
        ;;
    esac
    shift
done
[ $library = no ] || rustdoc -D warnings --out-dir "$MITHRAS_PAGES/$name" "${arguments[@]}"
