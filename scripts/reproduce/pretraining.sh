#!/usr/bin/env bash
# docs/results/pretraining.md: pretrains ViT-tiny by one objective, probes it, and fine-tunes it.
#
#   SET=DIR FOLDS=FILE DATA=DIR MINED=PATTERN scripts/reproduce/pretraining.sh NAME [OUT]  (OUT: runs/pretraining)
#
# NAME: mim | image | beta100 | beta000 | mithras (presets/pretrain-cpu-NAME-vit-tiny.toml). SET is a regions dataset
# (scripts/reproduce/detection.sh makes one), FOLDS its manifest, DATA the AMi-Br folder. MINED, like
# 'runs/mined-{fold}.csv', are the hard negatives of the detector's second stage; without it that step is left out.
# Needs the training build on PATH and cargo.
set -euo pipefail
cd "$(dirname "$0")/../.."
name=${1:?name an objective; see the head of this file}
: "${SET:?set SET to a regions dataset}" "${FOLDS:?set FOLDS to its manifest}" "${DATA:?set DATA to the AMi-Br folder}"
out=${2:-runs/pretraining}
mkdir -p "$out"

[ -e "$out/corpus" ] || mithras corpus labelled "$SET" --folds "$FOLDS" --fold 0 --out "$out/corpus"
mithras train pretrain --preset "presets/pretrain-cpu-$name-vit-tiny.toml" --corpus "$out/corpus" --out "$out/$name" --threads 1 --workers 1
cargo run --release -p mithras-train --example probe -- "$out/corpus" untrained "$out/$name/encoder.safetensors" --threads 1

mithras train finetune --preset presets/finetune-ami-br-vit-tiny.toml --data "$DATA" --set 'init="checkpoint"' --set layer_decay=0.75 \
    --set symmetries=4 --init "$out/$name/encoder.safetensors" --out "$out/ami-br-$name"
[ -e "$out/ami-br-$name/test" ] || mithras train test --run "$out/ami-br-$name" --data "$DATA"
mithras train probe --preset presets/probe-ami-br-vit-tiny.toml --data "$DATA" --init "$out/$name/encoder.safetensors" --out "$out/probe-$name"
if [ -n "${MINED:-}" ]; then
    mithras train finetune --preset presets/finetune-mitosis-vit-tiny-pretrained.toml --data "$SET" --folds "$FOLDS" --fold 1 \
        --mined "$MINED" --init "$out/$name/encoder.safetensors" --out "$out/figure-$name"
fi

# The loader, on an idle machine.
cargo run --release -p mithras-crops --example view_speed -- "$out/corpus" 1 80
python3 benches/peer/view_loader.py "$out/corpus" 1 30
