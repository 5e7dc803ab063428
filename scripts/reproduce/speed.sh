#!/usr/bin/env bash
# docs/results/speed.md, table by table.
#
#   scripts/reproduce/speed.sh end-to-end FRAMES     9 frames, against the peer; both bundled detectors
#   scripts/reproduce/speed.sh budget                what each stage costs, on one thread
#   scripts/reproduce/speed.sh engines PACKAGE       per window and crop; PACKAGE: one of `mithras train export`
#   scripts/reproduce/speed.sh reading               slide tiles
#   scripts/reproduce/speed.sh encoders              forward passes of all encoders (training build)
#   scripts/reproduce/speed.sh features SLIDE        `embed` against TRIDENT's loop
#   scripts/reproduce/speed.sh bf16 FRAMES           what bf16 changes
#   scripts/reproduce/speed.sh step                  a pretraining step against PyTorch
#   scripts/reproduce/speed.sh memory OUT            peak resident memory on a large drawn slide
#   scripts/reproduce/speed.sh slide OUT             a drawn slide of 100 mm2 of tissue
#   scripts/reproduce/speed.sh candidates OUT        peak memory with more than 150,000 candidates on one slide
#
# First: cargo build --release, and pip install -r scripts/requirements.txt. FRAMES: H&E frames at 0.2456 um/px (ICPR
# 2012, Aperio).
set -euo pipefail
cd "$(dirname "$0")/../.."
case ${1:-} in
end-to-end)
    python3 benches/end_to_end.py --frames "$2" --model models/mithras-standard --count 9 --repeats 3 --threads 2 \
        --only peer native "openvino f32" "openvino bf16" YOLO ${YOLO:+--yolo "$YOLO"}
    # The peer has no architecture for mithras-fast, and runs the other.
    python3 benches/end_to_end.py --frames "$2" --model models/mithras-standard --bundled fast --count 9 --repeats 5 \
        --threads 2 --only "PyTorch eager" native
    ;;
budget)
    mithras bench detect --engine native --candidates 154
    mithras bench detect --engine native --model fast --candidates 94 --open-share 0.42
    ;;
engines)
    python3 crates/infer/tests/golden/generate.py full target/seeded-full
    cargo run --release -p mithras-infer --example engine_times -- target/seeded-full 11
    python3 benches/peer/engine_times.py "$2"
    ;;
reading) cargo bench -p mithras-slide --bench read ;;
encoders) mithras bench encoders --threads 1 --batch 2 --runs 3 --out bench --candidates 42,2305 ;;
features)
    for encoder in vit_small_patch16_224 vit_base_patch16_224; do
        python3 benches/embed.py "$2" --encoder "$encoder" --repeats 3
        python3 benches/embed.py "$2" --encoder "$encoder" --repeats 3 --precision bf16
    done
    ;;
bf16) python3 benches/bf16.py --frames "$2" --model models/mithras-standard ;;
step)
    cargo run --release -p mithras-net --example bench -- mae 1
    python3 crates/net/examples/bench_peer.py mae 1
    ;;
memory)
    mithras demo --draw-only --size 100000,100000 --out "$2"
    mithras detect "$2/drawn.tiff" --out "$2/out" --threads 2 &
    pid=$!
    while [ -e /proc/$pid/status ] && grep VmHWM /proc/$pid/status; do sleep 1; done | sort -k2 -n | tail -n 1
    ;;
candidates)
    # mithras-fast, its candidates taken from peaks of 0.0017 on.
    mithras demo --draw-only --size 60000,60000 --tissue-mm2 106 --figures 300 --out "$2"
    cp -rL models/mithras-fast "$2/model"
    sed -i 's/^threshold = .*/threshold = 0.0017/; s/^method = .*/method = "peaks"/; /^opening_radius/d
        s/^min_area_px.*/min_distance_px = 4/' "$2/model/card.toml"
    /usr/bin/time -v mithras detect "$2/drawn.tiff" --model "$2/model" --out "$2/out" --threads 2
    ;;
slide)
    mithras demo --draw-only --size 60000,60000 --tissue-mm2 106 --figures 300 --out "$2"
    for precision in f32 bf16; do
        time mithras detect "$2/drawn.tiff" --model fast --precision $precision --out "$2/$precision" --threads 2
    done
    ;;
*) sed -n '2,/^set/p' "$0" | sed '$d' | cut -c3- >&2; exit 2 ;;
esac
