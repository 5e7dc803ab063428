#!/usr/bin/env bash
# Trains a detector (presets/detector-resnet50.toml) for long on a machine with a GPU that is there for a short while.
#
#   scripts/gpu_train.sh pack DATA PACK          what it reads, as parts of at most 48 MiB
#   scripts/gpu_train.sh run PACK|DATA OUT       every step that is not done yet; run it again to continue
#   scripts/gpu_train.sh collect OUT WEIGHTS     package and weights alone, to carry home
#   scripts/gpu_train.sh check WEIGHTS DATA OUT  at home: the folds' packages, and their scores on what they left out
#
# Settings: BINARY (target/release/mithras with the feature train), INIT (EfficientNet-Lite0 weights), FINETUNE_INIT
# (ResNet-50 v2 weights to stage 3), DEVICE (cuda), SECONDS_LEFT (540: stops in good time; every training continues
# from its state), SCALE (1; 0.002 tries the whole way on a CPU), PRECISION (bf16 on a GPU).
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
binary=${BINARY:-$here/target/release/mithras}
device=${DEVICE:-cuda}
scale=${SCALE:-1}
precision=${PRECISION:-$([ "$device" = cpu ] && echo f32 || echo bf16)}
ends=$(($(date +%s) + ${SECONDS_LEFT:-540}))

die() { echo "gpu_train: $*" >&2; exit 1; }
left() { echo $((ends - $(date +%s))); }
# A whole number of steps, at least the second one.
steps() { python3 -c "import sys; print(max(int(float(sys.argv[1]) * $scale), int(sys.argv[2])))" "$1" "$2"; }

pack() {
    local data=$1 pack=$2
    mkdir -p "$pack"
    rm -f "$pack"/part-*
    # Of AMi-Br the training part alone; the test part stays at home.
    (cd "$data" && {
        find icpr2012 extra_he/consep_256 extra_he/monuseg_1000 -type f
        find ami_br -name 'MIDOG21_*.png'
        ls ami_br/labels.csv
    } | LC_ALL=C sort) >"$pack/files"
    tar --sort=name --mtime=@0 -C "$data" -cf - -T "$pack/files" | split -b 48M - "$pack/part-"
    (cd "$pack" && sha256sum part-* >SHA256SUMS)
    du -sh "$pack"
}

# A folder as it is, or a pack unpacked next to it.
unpacked() {
    [ -e "$1/SHA256SUMS" ] || { echo "$1"; return; }
    if [ ! -e "$1/data/.whole" ]; then
        (cd "$1" && sha256sum --quiet -c SHA256SUMS) >&2 || die "$1: parts are missing or damaged"
        mkdir -p "$1/data" && cat "$1"/part-* | tar -C "$1/data" -xf - && touch "$1/data/.whole"
    fi
    echo "$1/data"
}

# step NAME COMMAND...: once; killed in good time it continues with the next call.
step() {
    local name=$1
    shift
    [ -e "$out/done/$name" ] && return
    [ "$(left)" -gt 20 ] || { echo "no time left before $name; run again" >&2; exit 3; }
    echo "== $name" >&2
    local code=0
    timeout --signal=INT --kill-after=15 "$(left)" "$@" >>"$out/log" 2>&1 || code=$?
    case $code in
    0) touch "$out/done/$name" ;;
    124 | 130 | 137) echo "$name is not done; run again to continue" >&2 && exit 3 ;;
    *) tail -n 20 "$out/log" >&2 && die "$name failed ($code); see $out/log" ;;
    esac
}

# The regions dataset of docs/results/detection.md.
dataset() {
    local data=$1 sets=$2 part
    [ -e "$sets/all/regions.json" ] && return
    rm -rf "$sets" && mkdir -p "$sets"
    "$binary" corpus import --kind regions --format icpr "$data/icpr2012" --mpp 0.2456 --out "$sets/icpr"
    "$binary" corpus import --kind regions --format ami-br "$data/ami_br" --exhaustive all --lenient --out "$sets/ami"
    # Every third image of MoNuSeg trains nothing: it sets the scale of each model's scores.
    local tissue
    tissue=$(cd "$data/extra_he/monuseg_1000" && ls ./*.jpg | LC_ALL=C sort | awk 'NR % 3 == 0' | cut -c3-14 | paste -sd,)
    "$binary" corpus import --kind regions --format he-folder "$data/extra_he/monuseg_1000" --mpp 0.25 --calibration "$tissue" --out "$sets/monuseg_1000"
    "$binary" corpus import --kind regions --format he-folder "$data/extra_he/consep_256" --mpp 0.25 --out "$sets/consep_256"
    "$binary" corpus merge "$sets/icpr" "$sets/ami" "$sets/monuseg_1000" "$sets/consep_256" --out "$sets/all"
}

run() {
    local data
    data=$(unpacked "$1") out=$2
    [ -x "$binary" ] || die "no $binary; build it with --release --features train, or set BINARY"
    mkdir -p "$out/done"
    "$binary" --version | tee -a "$out/log" >&2
    dataset "$data" "$out/sets" >>"$out/log"
    local seg cls every scored stage set=()
    seg=$(steps 4000 8) cls=$(steps 6000 12) every=$(steps 1000 4) scored=$(steps 8000 64)
    for stage in segment finetune; do
        set+=(--set "$stage.train.precision=$precision" --set "$stage.train.warmup=$(steps 100 1)" --set "$stage.train.ema=0.998"
            --set "$stage.train.epoch=$every" --set "$stage.train.save_every=$every")
    done
    step detector "$binary" train detector --data "$out/sets/all" --preset "$here/presets/detector-resnet50.toml" --device "$device" \
        --init "${INIT:?INIT: the file of EfficientNet-Lite0 weights}" --out "$out/run" "${set[@]}" \
        --finetune-init "${FINETUNE_INIT:?FINETUNE_INIT: the file of ResNet-50 v2 weights}" \
        --set "segment.train.steps=$seg" --set "finetune.train.steps=$cls" --set "finetune.mining.first=$every" --set "finetune.mining.every=$every" --set "finetune.mining.scored=$scored"
    echo "all steps are done" >&2
}

collect() {
    local file
    (cd "$1/run" && find . -name model.safetensors -o -name run.json -o -name preset.toml -o -name metrics.csv -o -name folds.json \
        -o -path './package/*' -o -path './calibration/*') | while read -r file; do
        mkdir -p "$2/$(dirname "$file")" && cp "$1/run/$file" "$2/$file"
    done
    du -sh "$2"
}

check() {
    local weights=$1 data=$2 out=$3 fold slide
    mkdir -p "$out/done"
    for fold in "$weights"/fold-*; do
        fold=$(basename "$fold")
        step "export-$fold" "$binary" train export --segmenter "$weights/$fold/segment/model.safetensors" \
            --classifier "$weights/$fold/finetune/model.safetensors" --threshold 0.3 --opening-radius 0 --symmetries 2 --license research \
            --name "$fold" --out "$out/package/$fold"
        slide=$(python3 -c "import json, sys
for g in json.load(open(sys.argv[1]))['groups']:
    if g['place'] == {'fold': int(sys.argv[2])} and g['name'] in ('A00', 'A01', 'A02'): print(g['name'])" \
            "$weights/folds.json" "${fold#fold-}")
        step "robustness-$fold" "$binary" evaluate robustness --images "$data/icpr2012/frames" --truth "$data/icpr2012/mitoses.csv" \
            --mpp 0.2456 --only "$slide" --model "$out/package/$fold" --out "$out/robustness/$fold"
    done
    echo "next: mithras evaluate operating-point (docs/results/detection.md)" >&2
}

case ${1:-} in
pack) [ $# = 3 ] || die "pack DATA PACK"; pack "$2" "$3" ;;
run) [ $# = 3 ] || die "run PACK|DATA OUT"; run "$2" "$3" ;;
collect) [ $# = 3 ] || die "collect OUT WEIGHTS"; collect "$2" "$3" ;;
check) [ $# = 4 ] || die "check WEIGHTS DATA OUT"; SECONDS_LEFT=${SECONDS_LEFT:-7200}; ends=$(($(date +%s) + SECONDS_LEFT)); check "$2" "$3" "$4" ;;
*) sed -n '2,/^set/p' "$0" | sed '$d' | cut -c3-; exit 2 ;;
esac
