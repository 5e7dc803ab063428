#!/usr/bin/env bash
# docs/results/ami.md: trains, scores and packages the subtype networks.
#
#   DATA=DIR INIT=FILE scripts/reproduce/subtypes.sh ROW [OUT]        (default OUT: runs/subtypes)
#
# ROW: bundled | all-figures | benchmark | scratch | lite0 | ami-br | ami-morph | b0 | vit-tiny. DATA is the AMi-Br
# folder. INIT is the file of starting weights: for `bundled` the detector's second stage
# (runs/detection/run/final/finetune/model.safetensors; `mithras-standard` has the same weights as f16), for
# `benchmark` ResNet-50 v2 to its third stage, for `lite0` and `ami-br` the detector's second stage on
# EfficientNet-Lite0, for `ami-morph` EfficientNet-Lite0, for `b0` a figure-or-not classifier
# (docs/notes/subtypes-rows.md), for `vit-tiny` an encoder of `mithras train pretrain`. Needs the training build on
# PATH.
set -euo pipefail
cd "$(dirname "$0")/../.."
row=${1:?name a row; see the head of this file}
: "${DATA:?set DATA to the AMi-Br folder}"
out=${2:-runs/subtypes}
run=$out/$row
mkdir -p "$out"

test_part() { # once per run: it opens the test part
    [ -e "$run/test" ] || mithras train test --run "$run" --data "$DATA"
}

case $row in
bundled)
    mithras train finetune --preset presets/finetune-ami-subtypes-resnet50.toml --data "$DATA" --init "${INIT:?}" --out "$run"
    test_part
    mithras train package --run "$run" --fold 0 --rounded --license "see the licences of the training data" --name mithras-morphology --out "$out/mithras-morphology"
    mithras train package --run "$run" --fold 0 --rounded --coarse --license "see the licences of the training data" --name mithras-atypical --out "$out/mithras-atypical"
    ;;
all-figures)
    mithras train finetune --preset presets/finetune-ami-subtypes-resnet50.toml --data "$DATA" --init mithras-standard --fold none --set 'train.precision="f32"' --out "$run"
    test_part
    ;;
benchmark)
    mithras train finetune --preset presets/finetune-ami-br-benchmark-resnet50.toml --data "$DATA" --init "${INIT:?}" --out "$run" --threads 1
    test_part
    mithras evaluate classification --predictions "$run/predictions.csv" --positive atypical --threshold 0.345 --fold fold
    mithras evaluate classification --predictions "$run/test/predictions.csv" --positive atypical --threshold 0.345 --fold fold
    mithras evaluate classification --predictions "$run/test/ensemble.csv" --positive atypical --threshold 0.345
    ;;
scratch)
    mithras train finetune --preset presets/finetune-ami-subtypes-scratch-efficientnet-b0.toml --data "$DATA" --out "$run" --threads 1
    test_part
    ;;
lite0)
    mithras train finetune --preset presets/finetune-ami-subtypes-lite0.toml --data "$DATA" --init "${INIT:?}" --out "$run" --threads 1
    test_part
    ;;
ami-br)
    mithras train finetune --preset presets/finetune-ami-br-lite0.toml --data "$DATA" --init "${INIT:?}" --out "$run" --threads 1
    test_part
    ;;
ami-morph)
    mithras train finetune --preset presets/finetune-ami-morph-lite0.toml --data "$DATA" --init "${INIT:?}" --out "$run" --threads 1
    test_part
    ;;
b0)
    mithras train finetune --preset presets/finetune-ami-br-efficientnet-b0.toml --data "$DATA" --init "${INIT:?}" --out "$run"
    test_part
    ;;
vit-tiny)
    mithras train finetune --preset presets/finetune-ami-br-vit-tiny.toml --data "$DATA" --set 'init="checkpoint"' --set layer_decay=0.75 \
        --set symmetries=4 --init "${INIT:?}" --out "$run"
    test_part
    mithras train probe --preset presets/probe-ami-br-vit-tiny.toml --data "$DATA" --init "$INIT" --out "$out/probe"
    ;;
*) sed -n '2,/^set/p' "$0" | sed '$d' | cut -c3- && exit 2 ;;
esac
