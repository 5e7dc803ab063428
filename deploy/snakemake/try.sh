#!/usr/bin/env bash
# Tries the Snakefile by Snakemake itself on drawn slides: shards, one of them killed at first, tables, a corpus,
# features; and experiments, one fold killed at first. The table must equal that of one process.
#
#   MITHRAS=target/debug/mithras SNAKEMAKE=snakemake deploy/snakemake/try.sh [SLIDES]
#
# Makes a throwaway environment by pip without a Snakemake; states SKIPPED and ends with 77 where it cannot. Experiments
# need the training build (TRAINER, by default MITHRAS); without it they are skipped, and a line states it.
set -euo pipefail
cd "$(dirname "$0")/../.."
mithras=$(realpath "${MITHRAS:-target/debug/mithras}")
trainer=$(realpath "${TRAINER:-$mithras}")
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

if ! "$trainer" train finetune --help >/dev/null 2>&1; then
    echo "SKIPPED: experiments need the training build; they were not tried" >&2
    echo "== all but experiments held"
    exit 0
fi
# Coloured discs in two classes, four sources each, and one to test on; and a regions dataset of drawn images.
python3 deploy/snakemake/discs.py "$work/data"
PATH=$work:$PATH python3 docs/tutorials/midog_layout.py "$work/midog" >/dev/null
"$mithras" corpus import --kind regions --format midog-json "$work/midog/MIDOG++.json" --images "$work/midog/images" --out "$work/set" >/dev/null
cp presets/finetune-ami-br-vit-tiny.toml presets/probe-ami-br-vit-tiny.toml presets/detector-smoke.toml "$work"
small="--set task=folder --set positive=marked --set model.image=32 --set data.crop=21 --set data.folds=2 --set train.batch=4"
tuned="$small --set train.epochs=2 --set train.warmup_epochs=1.0 --set train.precision=f32"
cat >"$work/experiments.csv" <<C
name,kind,preset,data,folds,init,test,flags
discs,finetune,finetune-ami-br-vit-tiny.toml,data,2,,yes,$tuned
probed,probe,probe-ami-br-vit-tiny.toml,data,2,out/experiments/discs/fold-0/model.safetensors,yes,$small --set init=checkpoint --set model.pool=mean --set train.epochs=2 --set train.warmup_epochs=0.0
whole,detector,detector-smoke.toml,set,2,,,
C
# The first start of a fold is killed; the probe waits for the weights that it looks at.
cat >"$work/trainer" <<S
#!/bin/bash
case " \$* " in *"/discs --fold 1 "*) [ -e "$work/fold-killed" ] || { touch "$work/fold-killed"; kill -9 \$\$; };; esac
exec "$trainer" "\$@"
S
chmod +x "$work/trainer"
config=(experiments="$work/experiments.csv" out="$work/out" threads=1 device=cpu trainer="$work/trainer")
run "$work/out/.snakemake/experiments/discs.done" --config "${config[@]}" ||
    { tail -n 40 "$work/log"; cat "$work"/out/.snakemake/experiments/discs/*.log "$work"/out/.snakemake/experiments/*.log; fail "no fine-tuning"; }
[ -e "$work/fold-killed" ] || fail "no fold was killed"
run experiments --config "${config[@]}" ||
    { tail -n 40 "$work/log"; tail -n 5 "$work"/out/.snakemake/experiments/*/*.log "$work"/out/.snakemake/experiments/*.log; fail "no experiments"; }
cat "$work/out/experiments.csv"
for row in "discs,finetune,held out,macro_f1" "discs,finetune,test part,macro_f1" "probed,probe,held out,macro_f1" "whole,detector,"; do
    grep -q "^$row" "$work/out/experiments.csv" || fail "the table has no row '$row'"
done
[ -e "$work/out/experiments/whole/package/card.toml" ] || fail "no package of the detector"
# As one process does it, without Snakemake.
"$trainer" train finetune --preset presets/finetune-ami-br-vit-tiny.toml --data "$work/data" --out "$work/alone" --device cpu --threads 1 \
    $tuned >/dev/null 2>&1
cmp "$work/alone/predictions.csv" "$work/out/experiments/discs/predictions.csv" || fail "predictions of the folds differ from those of one process"
echo "== experiments over folds after a killed one: predictions are those of one process"
echo "== all held"
