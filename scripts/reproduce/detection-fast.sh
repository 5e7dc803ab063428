#!/usr/bin/env bash
# docs/results/detection.md, mithras-fast: other first stages at 0.5 um/px, with the second stages and the scale of
# mithras-standard.
#
#   DATA=DIR INIT=FILE scripts/reproduce/detection-fast.sh [OUT]
#
# After scripts/reproduce/detection.sh, with the same OUT.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${DATA:?set DATA to the folder of the data}" "${INIT:?set INIT to EfficientNet-Lite0 weights}"
out=${1:-runs/detection}
run=$out/run r=$out/rob f=$out/fast
mkdir -p "$f"
changes=clean,jpeg-30,blur-1.0,noise-8,haematoxylin-0.75,combined-1
monuseg=$DATA/extra_he/monuseg_1000

once() {
    local made=$1
    shift
    [ -e "$made" ] || "$@"
}

slides=(A01 A02 A00)
for k in 0 1 2; do
    slide=${slides[$k]}
    foreign=$(python3 -c 'import json, sys
groups = json.load(open(sys.argv[1]))["groups"]
print(",".join(g["name"] for g in groups if g["place"] == {"fold": int(sys.argv[2])} and g["name"].startswith("TCGA-")))' "$run/folds.json" "$k")
    mithras train segment --data "$out/sets/all" --folds "$run/folds.json" --fold "$k" --preset presets/segment-fast.toml --init "$INIT" --out "$f/$k"
    once "$f/pkg-$k" mithras train export --segmenter "$f/$k/model.safetensors" --classifier "$run/fold-$k/finetune/model.safetensors" \
        --threshold 0.6 --opening-radius 0 --min-area 5 --symmetries 2 --license research --name "fast-$k" --out "$f/pkg-$k"
    once "$f/patches-$k" mithras evaluate robustness --images "$out/mirrored/$k" --truth "$out/mirrored/$k/truth.csv" \
        --within "$out/mirrored/$k/regions.csv" --mpp 0.25 --changes "$changes" --model "$f/pkg-$k" --out "$f/patches-$k"
    once "$f/$slide" mithras evaluate robustness --images "$DATA/icpr2012/frames" --truth "$DATA/icpr2012/mitoses.csv" --mpp 0.2456 \
        --only "$slide" --changes "$changes" --model "$f/pkg-$k" --out "$f/$slide"
    once "$f/other-$k" mithras evaluate robustness --images "$monuseg" --no-figures --only "$foreign" --mpp 0.25 --changes clean \
        --model "$f/pkg-$k" --out "$f/other-$k"
done
mithras train segment --data "$out/sets/all" --folds "$run/folds.json" --fold none --preset presets/segment-fast.toml --init "$INIT" --out "$f/none"

# The scale, and the tissue that sets it, are those of mithras-standard.
mithras evaluate operating-point --density 15 --scale "$out/points.json" \
    --fold A00="$f/A00" --fold A01="$f/A01" --fold A02="$f/A02" \
    --fold patches-0="$f/patches-0" --fold patches-1="$f/patches-1" --fold patches-2="$f/patches-2" \
    --foreign A00="$f/other-2" --foreign A01="$f/other-0" --foreign A02="$f/other-1" \
    --tissue A00="$r/tissue-2" --tissue A01="$r/tissue-0" --tissue A02="$r/tissue-1" \
    --tissue patches-0="$r/tissue-0" --tissue patches-1="$r/tissue-1" --tissue patches-2="$r/tissue-2" --out "$f/points.json"
mithras train export --segmenter "$f/none/model.safetensors" --classifier "$run/final/finetune/model.safetensors" --points "$f/points.json" \
    --tissue "$r/tissue-final" --threshold 0.6 --opening-radius 0 --min-area 5 --symmetries 2 --license "see the licences of the training data" \
    --name mithras-fast --out "$out/mithras-fast"
