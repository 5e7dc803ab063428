# The jobs of compare_outputs.py, run in an empty folder with $MITHRAS: every verb on drawn or public
# input. What a verb prints is kept next to what it writes. Real data is read where MITHRAS_DATA points.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
data=${MITHRAS_DATA:-$root/../shared/data}
tiny=$root/crates/infer/tests/golden/tiny
export MITHRAS_DATA=$data

# job NAME ARGUMENTS: stdout, stderr and exit code in NAME.*; a refusal is an output like any other. compare_outputs.py
# reads the codes of all verbs from jobs.txt.
job() {
    local name=$1 code=0
    shift
    "$MITHRAS" "$@" >"$name.out" 2>"$name.err" </dev/null || code=$?
    echo $code >"$name.code"
    echo "$code $*" >>jobs.txt
}

# served NAME PATH... -- ARGUMENTS: starts a server, keeps what each path of it answers, and ends it.
served() {
    local name=$1 paths=()
    shift
    while [ "$1" != -- ]; do paths+=("$1"); shift; done
    shift
    "$MITHRAS" "$@" >"$name.out" 2>"$name.err" </dev/null &
    local server=$! address=
    for _ in $(seq 100); do
        address=$(grep -ohE 'http://[^ ]+' "$name.out" "$name.err" | head -n 1)
        [ -z "$address" ] || break
        sleep 0.1
    done
    for path in "${paths[@]}"; do
        python3 - "$address" "$path" >"$name-$(echo "$path" | tr -c 'a-z0-9\n' _).answer" <<'P'
import sys, urllib.parse, urllib.request
address, path = sys.argv[1:]
parts = urllib.parse.urlsplit(address)
url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/{path}" + (f"?{parts.query}" if parts.query else "")
sys.stdout.buffer.write(urllib.request.urlopen(url, timeout=20).read())
P
    done
    # Without a terminal bash starts it deaf to the interrupt.
    kill $server
    local code=0
    wait $server || code=$?
    echo $code >"$name.code"
    echo "$code $*" >>jobs.txt
    # The port and the token are others each time.
    sed -i -E 's#http://[^ ]+#ADDRESS#g' "$name.out" "$name.err"
}

# Slides: drawn, what they are, tissue.
job demo demo --draw-only --out drawn --size 2600,2200 --figures 30
slide=$(find drawn -name '*.tif*' | head -n 1)
truth=$(find drawn -name '*truth*.csv' -o -name 'truth.csv' | head -n 1)
job slide-info slide info "$slide"
job slide-info-json slide info "$slide" --json
job slide-tissue slide tissue "$slide" --out tissue.geojson
job slide-thumbnail slide thumbnail "$slide" --out thumbnail.png
job slide-refused slide info "$data/slides/broken.svs"

# Figures, with each available engine; scores and counts.
job detect detect "$slide" --out detect --model "$tiny" --engine rten --threads 1
job detect-resume detect "$slide" --out detect --model "$tiny" --engine rten --threads 1 --resume
job detect-openvino detect "$slide" --out detect-openvino --model "$tiny" --engine openvino --threads 1
job detect-no-mpp detect "$data"/slides/TCGA-HT*.png --out detect-no-mpp --model "$tiny" --engine rten
job evaluate evaluate detections --predictions detect --truth "$truth" --json
job evaluate-classification evaluate classification --predictions "$root/docs/none.csv" --labels "$root/docs/none.csv"

job detect-fast detect "$slide" --out detect-fast --model fast --engine rten --threads 1
job detectors-combine detectors combine --first "$tiny" --second "$root/models/mithras-fast" --name both --out both

# A run counted again, exported and reported.
job recount recount detect --operating-point 0.4,0.4 --into recounted
job gather gather detect
job gather-into gather detect detect-fast --into gathered
job export-qupath export qupath detect --out qupath
job export-dicom export dicom detect --out dicom
job report report detect --out pages --mitotic-score nottingham --field-diameter 0.55
job quality quality "$slide" "$data/slides/CMU-1-Small-Region.svs" --out quality
job deidentify slide deidentify "$data/slides/CMU-1-Small-Region.svs" deidentified.svs
printf 'slide\n%s\n' "$slide" >slides.csv
job slurm slurm --list slides.csv --out slurm --dry-run
job grade survival grade --counts detect/counts.csv --scheme nottingham --field-diameter 0.55

served view "" api/index api/slide/0 -- view detect --port 0
served start "" -- start --out started --no-browser --port 0
job manual manual --out man
job bench-detect bench detect --model "$tiny" --engine native --runs 1 --json

# A fold's images, its package under changes, points and a scale.
mkdir -p frames measured
python3 - "$slide" "$truth" <<'P'
import csv, sys
slide, truth = sys.argv[1:]
rows = list(csv.DictReader(open(truth)))
with open("frame-truth.csv", "w", newline="") as out:
    w = csv.writer(out)
    w.writerow(["file", "x", "y"])
    for r in rows:
        if r.get("kind", r.get("label", "")).startswith("mitotic"):
            w.writerow(["frame.png", r["x_px"], r["y_px"]])
P
job frame slide thumbnail "$slide" --out frames/frame.png --size 2600
job robustness evaluate robustness --images frames --truth frame-truth.csv --mpp 0.25 --changes clean,jpeg-30 --model fast \
    --engine rten --out measured/a
job robustness-tissue evaluate robustness --images frames --no-figures --mpp 0.25 --changes clean --model fast --engine rten \
    --out measured/tissue
job operating-point evaluate operating-point --density 15 --fold a=measured/a --fold b=measured/a --tissue a=measured/tissue \
    --tissue b=measured/tissue --out points.json
job calibrate calibrate --model fast --data measured/a --out ours --json
mkdir -p challenge/input/images/histopathology-roi-cropout
cp "$slide" challenge/input/images/histopathology-roi-cropout/case.tif
job challenge challenge midog25-t1 --input challenge/input --output challenge/output --model "$tiny" --engine rten
job detectors-import detectors import --onnx "$root/crates/infer/tests/golden/boxes.onnx" --mpp 0.25 --name boxes --license none \
    --window 64 --out boxes

# Encoders, data sets, experiments.
job encoders-convert encoders convert --onnx "$root/crates/features/tests/golden/tiny.onnx" --name tiny --image 32 --mpp 0.5 \
    --mean 0.7032,0.5361,0.6610 --std 0.2172,0.2608,0.2072 --pooling "mean of patches" --license none --out encoder
job encoders-show encoders show encoder --json
job embed embed "$slide" --encoder encoder --out features --tile-mpp 0.5
job encoders-list encoders list
job data-list data list
job data-show data show MIDOG22
job data-part data part MIDOGpp --labels "$data/annotations/MIDOG++.json" --out part.json
job data-check data check "$data"
job experiment-list experiment list
job experiment-show experiment show subtypes
job experiment-run experiment run pseudo-label-review tumour-review --out reviews
job experiment-report experiment report reviews
job experiment-export experiment export --snakemake pseudo-label-review --out reviews --to reviews.smk

# Survival.
table=$data/survival/TCGA-CDR_THCA.csv
common=(--table "$table" --time OS.time --event OS)
job cox survival cox "${common[@]}" --covariates age_at_initial_pathologic_diagnosis,gender
job cox-json survival cox "${common[@]}" --covariates age_at_initial_pathologic_diagnosis,gender --json
job km survival km "${common[@]}" --covariates gender --json
job logrank survival logrank "${common[@]}" --covariates gender --json
job lrt survival lrt "${common[@]}" --covariates age_at_initial_pathologic_diagnosis --add gender --json
job cindex survival cindex "${common[@]}" --covariates age_at_initial_pathologic_diagnosis --json
python3 - <<'P'
import random
random.seed(5)
with open("counts.csv", "w") as counts, open("clinical.csv", "w") as clinical:
    counts.write("slide,status,hotspot_count,density_per_20mm2\n")
    clinical.write("slide,patient,months,dead,age,grade\n")
    for i in range(60):
        n = random.randint(0, 40)
        counts.write(f"s{i},done,{n},{n * 3.7 + random.random():.3f}\n")
        if i % 2 == 0:
            follow_up = (f"{random.expovariate(0.01 + n / 900):.2f},{random.random() < 0.6:d},"
                         f"{random.randint(30, 80)},{1 + (n > 10) + (n > 25)}")
        clinical.write(f"s{i},p{i // 2},{follow_up}\n")
P
job study survival study --counts counts.csv --clinical clinical.csv --join slide=slide --patient patient \
    --time months --event dead --covariates age --boxes grade --replicates 200 --out study

# Corpora and the audit.
job import corpus import "$data/annotations/MIDOG2021.sqlite" --format sliderunner --out imported --json
job build corpus build "$slide" --preset tcga-mf-pseudo --no-tumour-filter --cohort DRAWN --any-cohort --threads 1 \
    --model "$tiny" --engine rten --out corpus --json
job build-bundled corpus build "$slide" --preset tcga-mf-pseudo --no-tumour-filter --cohort DRAWN --any-cohort --threads 1 \
    --engine rten --out corpus-bundled --json
job inspect corpus inspect corpus-bundled
job verify corpus verify corpus-bundled
job shortcuts corpus shortcuts corpus-bundled --json
job interchange corpus interchange corpus-bundled --above 0.5 --up-to 0.7 --out noisy
job merge corpus merge corpus corpus-bundled --out merged
job overlap corpus overlap corpus-bundled noisy
job split corpus split corpus-bundled --folds 2 --out folds.json
job audit-score audit score --counts "$root/crates/cli/tests/golden/audit_paper.csv"
job audit-score-json audit score --counts "$root/crates/cli/tests/golden/audit_paper.csv" --json
job audit-sample audit sample corpus-bundled --out sample --per mitotic_figure=2 --per mimicker=2 --seed 3
served audit-serve "" -- audit serve sample/package --port 0

# Crops.
mapfile -t crops < <(ls "$data"/ami_br/Atypical/*.png | head -n 6)
job classify classify "${crops[@]}" --model "$root/models/mithras-atypical" --engine rten --mpp 0.25 --out classified.csv
# As if the first three were typical.
awk -F, -v OFS=, 'NR == 1 { print $1, "truth"; next } { print $1, NR < 5 ? "typical" : "atypical" }' classified.csv >truth-of-crops.csv
job evaluate-classified evaluate classification --predictions classified.csv --labels truth-of-crops.csv --json
job classify-json classify "$(ls "$data"/ami_br/Normal/*.png | head -n 1)" --mpp 0.25 --engine rten \
    --model "$root/models/mithras-morphology" --out classified-json.csv --json

# Training shrinks, where the build has them.
job frames-set corpus import "$data/icpr2012" --kind regions --format icpr --mpp 0.2456 --out frames-set
job frames-folds corpus split frames-set --leave-one-out --out frames-folds.json
# Earlier programs take the dataset as --data.
data_flag=()
if "$MITHRAS" corpus labelled --help 2>/dev/null | grep -q -e '--data '; then data_flag=(--data); fi
job labelled corpus labelled "${data_flag[@]}" frames-set --folds frames-folds.json --out labelled
job corpus-export corpus export "${data_flag[@]}" frames-set --format yolo --folds frames-folds.json --fold 0 --out yolo
job segment train segment --preset "$root/presets/segment-smoke.toml" --data frames-set --folds frames-folds.json --fold A00 \
    --out segment --device cpu --threads 1
job bench-missing bench encoders --runs 0
job doctor doctor --json
job doctor-help doctor --help
job train-finetune train finetune --preset "$root/presets/finetune-smoke.toml" --data frames-set --folds frames-folds.json \
    --fold A00 --out finetune --device cpu --threads 1
job train-pretrain train pretrain --preset "$root/presets/pretrain-smoke.toml" --corpus corpus-bundled --out pretrain --device cpu \
    --threads 1
job train-export train export --segmenter segment/model.safetensors --classifier finetune/model.safetensors --threshold 0.3 \
    --opening-radius 0 --license none --name smoke --out smoke
job train-mine train mine --data frames-set --folds frames-folds.json --fold A00 --segmenter segment/model.safetensors --out mined.csv \
    --device cpu --threads 1
job train-calibrate train calibrate --data frames-set --folds frames-folds.json --fold A00 --segmenter segment/model.safetensors \
    --classifier finetune/model.safetensors --out calibration.json --device cpu --threads 1
job train-detector train detector --data frames-set --preset "$root/presets/detector-smoke.toml" --out detector --only 0 \
    --device cpu --threads 1
job train-pseudo-label train pseudo-label --data frames-set --model smoke --out pseudo.csv
job crops-folds corpus split labelled --folds 2 --out crops-folds.json
small=(--set 'task="crops"' --set model.image=32 --set data.crop=32 --set 'data.folds_file="crops-folds.json"' --set train.epochs=1
    --set train.warmup_epochs=0.0 --fold 0 --device cpu --threads 1)
job train-finetune-crops train finetune --preset "$root/presets/finetune-ami-br-vit-tiny.toml" --data labelled "${small[@]}" \
    --set train.batch=64 --set 'train.precision="f32"' --out crops-run
job train-probe train probe --preset "$root/presets/probe-ami-br-vit-tiny.toml" --data labelled "${small[@]}" \
    --init crops-run/fold-0/model.safetensors --allow-partial --out probe
job train-test train test --run crops-run --data labelled --out tested --device cpu
job train-package train package --run crops-run --fold 0 --name crops --license none --out crops-package
