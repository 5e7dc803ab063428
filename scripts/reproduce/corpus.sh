#!/usr/bin/env bash
# docs/results/corpus.md: importing, building, reading and tissue masks.
#
#   scripts/reproduce/corpus.sh import FORMAT FILE        counts of one file
#   scripts/reproduce/corpus.sh build OUT SLIDE...        a corpus of real slides (MPP_TABLE, TABLE: of `corpus build`)
#   scripts/reproduce/corpus.sh drawn OUT                 56 drawn slides, one worker
#   scripts/reproduce/corpus.sh reading OUT               60,000 drawn crops; ours and the peers'
#   scripts/reproduce/corpus.sh tissue SLIDE...           tissue masks; ours and OpenCV's
#   scripts/reproduce/corpus.sh filter TISSUE WEIGHTS OUT a tumour filter of tiles in folders by class (training build)
set -euo pipefail
cd "$(dirname "$0")/../.."
usage() { sed -n '2,/^set/p' "$0" | sed '$d' | cut -c3- >&2; exit 2; }
[ $# -ge 2 ] || usage
what=$1
shift
case $what in
import) mithras corpus import --format "$1" "$2" --json ;;
build)
    out=$1
    shift
    mithras corpus build --preset tcga-mf-pseudo --no-tumour-filter --table "${TABLE:?}" --mpp-table "${MPP_TABLE:?}" "$@" --out "$out"
    ;;
drawn)
    mkdir -p "$1/slides"
    for seed in $(seq 100 155); do
        [ -e "$1/slides/$seed.tiff" ] && continue
        mithras demo --size 1400,1100 --figures 8 --seed "$seed" --draw-only --out "$1/$seed"
        mv "$1/$seed/drawn.tiff" "$1/slides/$seed.tiff"
    done
    mithras corpus build --preset tcga-mf-pseudo --no-tumour-filter --cohort DRAWN --threads 1 --workers 1 "$1/slides" --out "$1/corpus"
    ;;
reading)
    cargo build --release -p mithras-crops --example read_speed
    target/release/examples/read_speed "$1" --make 60000
    python3 benches/peer/corpus_read.py "$1" target/release/examples/read_speed
    ;;
tissue)
    cargo build --release -p mithras-regions --example tissue_speed
    python3 benches/peer/tissue.py target/release/examples/tissue_speed "$@"
    ;;
filter)
    mithras train finetune --preset presets/finetune-folder-efficientnet-b0.toml --data "$1" --init "$2" --fold 0 --set train.epochs=25 \
        --set train.batch=9 --set train.precision=f32 --set 'positive="tumour_epithelium"' --out "$3/run"
    mithras train package --run "$3/run" --fold 0 --positive tumour_epithelium --name tumour --license research --out "$3/tumour"
    ;;
*) usage ;;
esac
