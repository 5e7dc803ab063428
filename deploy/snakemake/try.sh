#!/usr/bin/env bash
# Tries the Snakefile by Snakemake itself on drawn slides: shards, one of them killed at first, tables, a corpus,
# features. The table must equal that of one process. (Experiments have a workflow of their own: `mithras experiment
# export --snakemake`.)
#
#   MITHRAS=target/debug/mithras SNAKEMAKE=snakemake deploy/snakemake/try.sh [SLIDES]
#
# Makes a throwaway environment by pip without a Snakemake; states SKIPPED and ends with 77 where it cannot.
set -euo pipefail
cd "$(dirname "$0")/../.."
mithras=$(realpath "${MITHRAS:-target/debug/mithras}")
model=$(realpath "${MODEL:-crates/infer/tests/golden/tiny}")
slides=${1:-6}
work=$(mktemp -d)
trap '[ -n "${KEEP:-}" ] && echo "kept: $work" || rm -rf "$work"' EXIT
snakemake=${SNAKEMAKE:-$(command -v snakemake || true)}
if [ -z "$snakemake" ]; then
    python3 -m venv "$work/venv" && "$work/venv/bin/pip" install -q snakemake ||
        { echo "SKIPPED: snakemake cannot be installed; nothing was tried" >&2; exit 77; }
    snakemake=$work/venv/bin/snakemake
fi
fail() { echo "FAILED: $*" >&2; exit 1; }
run() { # more words for snakemake
    "$snakemake" --snakefile deploy/snakemake/Snakefile --profile deploy/snakemake/profile --cores 2 --quiet all \
        --directory "$work" "$@" >>"$work/log" 2>&1
}
echo "== Snakemake $("$snakemake" --version), $slides slides"
mkdir "$work/slides"
echo slide,patient >"$work/slides.csv"
# Six drawings, each under several names.
for i in $(seq "$slides"); do
    drawn=$work/drawn/$(((i - 1) % 6 + 1))
    [ -e "$drawn" ] || "$mithras" demo --draw-only --out "$drawn" --size 900,800 --figures 4 --seed "$(basename "$drawn")" 2>/dev/null
    ln "$drawn/drawn.tiff" "$work/slides/s$i.tiff"
    echo "slides/s$i.tiff,P$i" >>"$work/slides.csv"
done
flags="--model $model --engine rten"
"$mithras" detect --list "$work/slides.csv" --out "$work/one" --threads 1 $flags >/dev/null 2>&1
# The first start of a shard is killed.
cat >"$work/mithras" <<S
#!/bin/bash
case " \$* " in *" --shard 1/3 "*) [ -e "$work/killed" ] || { touch "$work/killed"; kill -9 \$\$; };; esac
exec "$mithras" "\$@"
S
chmod +x "$work/mithras"
config=(list="$work/slides.csv" out="$work/out" shards=3 threads=1 mithras="$work/mithras" detect_flags="$flags")
run --config "${config[@]}" || { cat "$work/log"; fail "the tables are not made"; }
[ -e "$work/killed" ] || fail "no shard was killed"
cmp "$work/one/counts.csv" "$work/out/counts.csv" || fail "the table differs from that of one process"
echo "== the table of $slides slides after a killed shard is that of one process"
before=$(stat -c %y "$work"/out/counts.csv "$work"/out/.snakemake/detect-*)
run --config "${config[@]}" || { cat "$work/log"; fail "a second call fails"; }
[ "$before" = "$(stat -c %y "$work"/out/counts.csv "$work"/out/.snakemake/detect-*)" ] || fail "done work is done again"
echo "== nothing is done twice"
run corpus --config "${config[@]}" "corpus_flags=--preset tcga-mf-pseudo --no-tumour-filter --any-cohort --cohort DRAWN $flags" ||
    { tail -n 30 "$work/log"; cat "$work/out/.snakemake/corpus.log"; fail "no corpus"; }
"$mithras" corpus verify "$work/out/corpus"
"$mithras" encoders convert --onnx crates/features/tests/golden/tiny.onnx --out "$work/tiny" --name tiny --image 32 \
    --mean 0.7,0.5,0.7 --std 0.2,0.2,0.2 --mpp 0.5 --pooling mean --license none >/dev/null
run embed --config "${config[@]}" encoder="$work/tiny" || { tail -n 30 "$work/log"; fail "no features"; }
[ "$(find "$work/out/features" -name '*.h5' | wc -l)" = "$slides" ] || fail "not a file of features per slide"
echo "== a corpus, and a file of features per slide"
echo "== all held"
