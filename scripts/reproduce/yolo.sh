#!/usr/bin/env bash
# The row YOLOv10n of docs/results/paper.md: trained by Ultralytics on the folds of `detection-public`, scored on the
# patients that each fold left out, and put into the run for its report.
#
#   DATA=DIR PYTHON=PYTHON scripts/reproduce/yolo.sh RUN OUT
#
# RUN: the folder of `experiment run detection-public`. DATA: the folder of data sets. PYTHON: one with ultralytics,
# onnx, onnxslim and Pillow (not among this project's requirements; AGPL). Give the same command again to continue;
# about half an hour of one core a fold.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${DATA:?set DATA to the folder of data sets}" "${PYTHON:?set PYTHON to one with ultralytics}"
run=$1 out=$2
patients=$run/steps/public/patients
folds=$run/steps/public/detector/scratch-tiny/folds.json
mkdir -p "$out"

# Both scanners in one folder: the frames state no resolution, so copies that do; and the figures in them.
[ -e "$out/frames/truth.csv" ] || "$PYTHON" - "$patients" "$out/frames" <<'P'
import csv, json, pathlib, sys
from PIL import Image
set, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
out.mkdir(parents=True, exist_ok=True)
rows = [["slide", "x_px", "y_px", "label"]]
for i in json.loads((set / "regions.json").read_text())["images"]:
    if not i["exhaustive"]:
        continue
    per_cm = tuple(10_000 / i["mpp"][a] for a in "xy")
    Image.open(set / i["file"]).convert("RGB").save(
        out / f"{i['name']}.tiff", compression="tiff_lzw", resolution_unit="cm", x_resolution=per_cm[0],
        y_resolution=per_cm[1])
    rows += [[i["name"], l["x"], l["y"], l["class"]] for l in i["labels"] if l["class"] == "mitotic_figure"]
with open(out / "truth.csv", "w", newline="") as f:
    csv.writer(f).writerows(rows)
P

measured=()
for k in 0 1 2; do
    [ -e "$out/windows-$k/data.yaml" ] || mithras corpus export "$patients" --format yolo --window 320 --stride 280 \
        --folds "$folds" --fold $k --out "$out/windows-$k"
    [ -e "$out/fold-$k/best.onnx" ] || "$PYTHON" scripts/yolo_train.py "$out/windows-$k" "$out/fold-$k"
    [ -e "$out/package-$k/card.toml" ] || mithras detectors import --onnx "$out/fold-$k/best.onnx" --mpp 0.25 \
        --name "yolov10n-$k" --license AGPL-3.0 --out "$out/package-$k"
    left_out=$("$PYTHON" -c 'import json, sys
print(",".join(s for g in json.load(open(sys.argv[1]))["groups"] if g["place"] == {"fold": int(sys.argv[2])} for s in g["slides"]))' "$folds" $k)
    [ -e "$out/measured-$k/robustness.json" ] || mithras evaluate robustness --images "$out/frames" \
        --truth "$out/frames/truth.csv" --only "$left_out" --changes clean --model "$out/package-$k" --out "$out/measured-$k"
    measured+=(--fold "$k=$out/measured-$k")
done
step=$run/steps/public/detector/yolov10n
mkdir -p "$step"
mithras evaluate operating-point "${measured[@]}" --out "$step/points.json"
