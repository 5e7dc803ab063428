#!/usr/bin/env bash
# docs/notes/fast-detector.md: the first stage and the screen of mithras-fast, and its points on MITOS-ATYPIA-14.
#
#   DATA=DIR INIT=FILE scripts/reproduce/detection-fast.sh [OUT]   after the imports of scripts/reproduce/detection.sh
#
# DATA holds mitos14/ and extra_he/monuseg_1000/, INIT is ImageNet's EfficientNet-Lite0. Needs the training build on
# PATH. Some 25 minutes of one core for the two trainings, and 10 for the measurements; finished steps are skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${DATA:?set DATA to the folder of the data}" "${INIT:?set INIT to EfficientNet-Lite0 weights}"
out=${1:-runs/detection}
f=$out/fast
mkdir -p "$f"
changes=clean,jpeg-30,blur-1.0,haematoxylin-1.25
monuseg=$DATA/extra_he/monuseg_1000

once() {
    local made=$1
    shift
    [ -e "$made" ] || "$@"
}

once "$f/folds.json" mithras corpus split "$out/sets/all" --folds 3 --seed 1 --out "$f/folds.json"
mithras train segment --data "$out/sets/all" --folds "$f/folds.json" --fold none --init "$INIT" \
    --preset presets/segment-fast-stride16.toml --threads 1 --out "$f/segment"
mithras train finetune --data "$out/sets/all" --folds "$f/folds.json" --fold none --init "$INIT" \
    --preset presets/screen-lite0.toml --threads 1 --out "$f/screen"
once "$f/stages" mithras train export --segmenter "$f/segment/model.safetensors" --classifier "$f/screen/model.safetensors" \
    --threshold 0.5 --opening-radius 0 --min-area 5 --symmetries 1 --license research --name screen-lite0 --out "$f/stages"
sed -i 's/^stride = 400/stride = 480/' "$f/stages/card.toml"
# The second stage of mithras-standard, flipped where the first copy is likely.
[ -e "$f/second" ] || cp -rL models/mithras-standard "$f/second"
grep -q symmetries_from "$f/second/card.toml" ||
    sed -i 's/^symmetries = .*/symmetries = 2\nsymmetries_from = 0.2/' "$f/second/card.toml"
once "$f/package" mithras detectors combine --first "$f/stages" --second "$f/second" --screen "$f/stages" --passes-from 0.3 \
    --operating-point 0.6,0.42 --name mithras-fast --out "$f/package"

# Figures of each frame as `evaluate` reads them; frames without any are named, too.
python3 - "$DATA/mitos14" >"$f/truth.csv" <<'P'
import csv, pathlib, sys
root = pathlib.Path(sys.argv[1])
rows = [r for r in csv.DictReader(open(root / "labels.csv")) if r["label"] == "mitosis"]
named = {pathlib.Path(r["file"]).stem for r in rows}
print("slide,x_px,y_px,label")
for r in rows:
    print(f"{pathlib.Path(r['file']).stem},{r['x']},{r['y']},mitotic_figure")
for frame in sorted((root / "frames").iterdir()):
    if frame.stem not in named:
        print(f"{frame.stem},,,")
P
folds=()
for patient in H05 H10 H11 H12 H15 H18; do
    once "$f/$patient" mithras evaluate robustness --images "$DATA/mitos14/frames" --truth "$f/truth.csv" --only "$patient" \
        --mpp 0.2273 --changes "$changes" --model "$f/package" --engine native --out "$f/$patient"
    # Two figures set no point.
    [ "$patient" = H12 ] || folds+=(--fold "$patient=$f/$patient")
done
tissue=$(cd "$monuseg" && for f in *.jpg; do echo "$f"; done | LC_ALL=C sort | awk 'NR % 3 == 0' | cut -c1-12 | paste -sd,)
once "$f/tissue" mithras evaluate robustness --images "$monuseg" --no-figures --only "$tissue" --mpp 0.25 --changes clean \
    --model "$f/package" --engine native --out "$f/tissue"
# Scale and points, as they are in models/mithras-fast/card.toml.
mithras evaluate operating-point --density 15 "${folds[@]}" --foreign H05="$f/tissue" --out "$f/points.json"
