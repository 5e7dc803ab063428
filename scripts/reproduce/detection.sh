#!/usr/bin/env bash
# docs/results/detection.md and robustness.md: trains mithras-standard in three folds and on everything, measures and
# packages it.
#
#   DATA=DIR INIT=FILE FINETUNE_INIT=FILE scripts/reproduce/detection.sh [OUT]      (default OUT: runs/detection)
#
# DATA holds icpr2012/, ami_br/, extra_he/monuseg_1000/ and extra_he/consep_256/. INIT is ImageNet's
# EfficientNet-Lite0, FINETUNE_INIT ResNet-50 v2 to its third stage. Needs the training build on PATH. About an hour
# of two CPU cores for each of the four models, and the measurements; finished steps are skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${DATA:?set DATA to the folder of the data}" "${INIT:?set INIT to EfficientNet-Lite0 weights}" "${FINETUNE_INIT:?set FINETUNE_INIT to ResNet-50 v2 weights}"
out=${1:-runs/detection}
mkdir -p "$out"/{sets,pkg,rob,mirrored}
run=$out/run
monuseg=$DATA/extra_he/monuseg_1000

# once DIR COMMAND...: the command, where DIR is not there yet.
once() {
    local made=$1
    shift
    [ -e "$made" ] || "$@"
}

# Data. Every third image of MoNuSeg trains nothing: it sets the scale of each model's scores.
tissue=$(cd "$monuseg" && for f in *.jpg; do echo "$f"; done | LC_ALL=C sort | awk 'NR % 3 == 0' | cut -c1-12 | paste -sd,)
once "$out/sets/icpr" mithras corpus import --kind regions --format icpr "$DATA/icpr2012" --mpp 0.2456 --out "$out/sets/icpr"
once "$out/sets/ami" mithras corpus import --kind regions --format ami-br "$DATA/ami_br" --exhaustive all --lenient --out "$out/sets/ami"
once "$out/sets/monuseg" mithras corpus import --kind regions --format he-folder "$monuseg" --mpp 0.25 --calibration "$tissue" --out "$out/sets/monuseg"
once "$out/sets/consep" mithras corpus import --kind regions --format he-folder "$DATA/extra_he/consep_256" --mpp 0.25 --out "$out/sets/consep"
once "$out/sets/all" mithras corpus merge "$out/sets/icpr" "$out/sets/ami" "$out/sets/monuseg" "$out/sets/consep" --out "$out/sets/all"

# Training: folds 0, 1 and 2 hold out the slides A01, A02 and A00.
mithras train detector --data "$out/sets/all" --preset presets/detector-resnet50.toml --init "$INIT" --finetune-init "$FINETUNE_INIT" --out "$run" --only 0,1,2,final

package() { # FOLDER NAME
    once "$out/pkg/$2" mithras train export --segmenter "$run/$1/segment/model.safetensors" --classifier "$run/$1/finetune/model.safetensors" \
        --threshold 0.3 --opening-radius 0 --symmetries 2 --license research --name "$2" --out "$out/pkg/$2"
    once "$out/rob/tissue-$2" mithras evaluate robustness --images "$monuseg" --no-figures --only "$tissue" --mpp 0.25 --changes clean \
        --model "$out/pkg/$2" --out "$out/rob/tissue-$2"
}

slides=(A01 A02 A00)
for k in 0 1 2; do
    package "fold-$k" "$k"
    slide=${slides[$k]}
    # The MoNuSeg patients that this fold holds out.
    foreign=$(python3 -c 'import json, sys
groups = json.load(open(sys.argv[1]))["groups"]
print(",".join(g["name"] for g in groups if g["place"] == {"fold": int(sys.argv[2])} and g["name"].startswith("TCGA-")))' "$run/folds.json" "$k")
    once "$out/mirrored/$k" mithras corpus export "$out/sets/all" --format sheets --folds "$run/folds.json" --fold "$k" \
        --source "ami_br MIDOG21" --mirror 32 --out "$out/mirrored/$k"
    once "$out/rob/patches-$k" mithras evaluate robustness --images "$out/mirrored/$k" --truth "$out/mirrored/$k/truth.csv" \
        --within "$out/mirrored/$k/regions.csv" --mpp 0.25 --model "$out/pkg/$k" --out "$out/rob/patches-$k"
    once "$out/rob/$slide" mithras evaluate robustness --images "$DATA/icpr2012/frames" --truth "$DATA/icpr2012/mitoses.csv" --mpp 0.2456 \
        --only "$slide" --model "$out/pkg/$k" --out "$out/rob/$slide"
    once "$out/rob/other-$k" mithras evaluate robustness --images "$monuseg" --no-figures --only "$foreign" --mpp 0.25 --changes clean \
        --model "$out/pkg/$k" --out "$out/rob/other-$k"
done
package final final

# The tables: prints every change at the balanced point, and the three points.
r=$out/rob
mithras evaluate operating-point --density 15 --fold A00="$r/A00" --fold A01="$r/A01" --fold A02="$r/A02" \
    --fold patches-0="$r/patches-0" --fold patches-1="$r/patches-1" --fold patches-2="$r/patches-2" \
    --foreign A00="$r/other-2" --foreign A01="$r/other-0" --foreign A02="$r/other-1" \
    --tissue A00="$r/tissue-2" --tissue A01="$r/tissue-0" --tissue A02="$r/tissue-1" \
    --tissue patches-0="$r/tissue-0" --tissue patches-1="$r/tissue-1" --tissue patches-2="$r/tissue-2" --out "$out/points.json"
mithras train export --segmenter "$run/final/segment/model.safetensors" --classifier "$run/final/finetune/model.safetensors" --points "$out/points.json" \
    --tissue "$r/tissue-final" --threshold 0.3 --opening-radius 0 --symmetries 2 --license "see the licences of the training data" \
    --name mithras-standard --out "$out/mithras-standard"
