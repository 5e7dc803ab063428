#!/usr/bin/env bash
# Tries the module by Nextflow itself on a drawn slide: its table must equal that of `mithras detect`; and by nf-test,
# where that is there, its own tests.
#
#   MITHRAS=target/debug/mithras NEXTFLOW=nextflow deploy/nextflow/try.sh
#
# Reports SKIPPED and ends with 77 without a Nextflow: it needs Java and a jar of its own, which this does not fetch.
set -euo pipefail
cd "$(dirname "$0")/../.."
fail() { echo "FAILED: $*" >&2; exit 1; }
nextflow=${NEXTFLOW:-$(command -v nextflow || true)}
[ -n "$nextflow" ] && "$nextflow" -version >/dev/null 2>&1 || { echo "SKIPPED: no nextflow runs here; nothing was tried" >&2; exit 77; }
mithras=$(realpath -m "${MITHRAS:-target/debug/mithras}")
[ -x "$mithras" ] || fail "$mithras is not there; build it first"
module=$(realpath deploy/nextflow/mithras/detect)
model=$(realpath "${MODEL:-crates/infer/tests/golden/tiny}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$mithras" "$work/bin/mithras"
export PATH=$work/bin:$PATH MITHRAS_SLIDE=$work/drawn/drawn.tiff
mithras demo --draw-only --out "$work/drawn" --size 1200,1000 --figures 4 2>/dev/null
mithras detect "$MITHRAS_SLIDE" --out "$work/one" --model "$model" --engine rten >/dev/null 2>&1
cat >"$work/main.nf" <<N
include { MITHRAS_DETECT } from '$module/main.nf'

workflow {
    MITHRAS_DETECT([[id: 'test'], file(System.getenv('MITHRAS_SLIDE'))], file('$model'))
}
N
cat >"$work/nextflow.config" <<'N'
process { cpus = 1; memory = '2 GB'; publishDir = [path: 'found', mode: 'copy']; ext.args = '--engine rten' }
N
cd "$work"
echo "== $("$nextflow" -version 2>&1 | grep -o 'version [0-9.]*')"
"$nextflow" -q run main.nf -stub >log 2>&1 || { cat log; fail "the stub does not run"; }
rm -rf found
"$nextflow" -q run main.nf >log 2>&1 || { cat log; fail "the module does not run"; }
cmp one/counts.csv found/test/counts.csv || fail "the table differs from that of mithras detect"
echo "== the table is that of mithras detect"
if command -v nf-test >/dev/null; then
    cd "$module/../.." && nf-test test mithras/detect/tests/main.nf.test || fail "nf-test"
else
    echo "SKIPPED: no nf-test; the module's own tests were not run" >&2
fi
echo "== all held"
