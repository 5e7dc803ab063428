#!/usr/bin/env bash
# Makes the Python wheel, with the program in it, and tries it in empty environments.
#
#   scripts/wheel.sh [--profile dist|release|dev] [--out DIR] [--no-tests]
#
# The wheel is for this machine's C library and newer ones (its name states which) and for Python 3.10 and
# newer. The tests take torch, pandas and the like from the active environment where there is one
# (scripts/setup.sh); what is not there is skipped by name.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."

profile=dist out=dist tests=yes
while [ $# -gt 0 ]; do
    case $1 in
        --profile) profile=$2; shift 2 ;;
        --out) out=$2; shift 2 ;;
        --no-tests) tests=no; shift ;;
        *) echo "wheel: unknown argument $1" >&2; exit 2 ;;
    esac
done
# MB, with weights: of what is handed out. Code that is not optimised is larger.
most=60
target=${CARGO_TARGET_DIR:-target}
case $profile in dev) folder=debug most=75 ;; *) folder=$profile ;; esac
python=$(command -v python3.11 || command -v python3)

tools=$target/wheel-tools
if [ ! -e "$tools/.complete" ]; then
    "$python" -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check --retries 5 'maturin>=1.9,<2' >&2
    touch "$tools/.complete"
fi

made=$(mktemp -d)
# This program has no weights of its own: whoever takes the target folder's program must find the one from before.
built=$target/$folder/mithras
kept=$target/.mithras-before-wheel
rm -f "$kept"
[ ! -e "$built" ] || ln "$built" "$kept"
tidy() {
    rm -rf "$made" crates/python/data "$built"
    [ ! -e "$kept" ] || mv "$kept" "$built"
}
trap tidy EXIT

# The program; `python` is named so that what both depend on is built as maturin will ask for it. Then the
# weights, which are in the wheel once; what packages share, in the first of them (crates/infer/build.rs).
features=infer/external-weights
# After the tests, whose crates serve here, too.
[ "$profile" != dev ] || features=$features,python/as-tested
cargo build --locked --profile "$profile" -p cli -p python --bin mithras --features "$features"
mkdir -p crates/python/data/scripts
declare -A place
for file in models/*/*.onnx; do
    digest=$(sha256sum <"$file")
    [ -z "${place[$digest]:-}" ] || continue
    place[$digest]=$file
    install -D -m 644 "$file" "crates/python/data/data/share/mithras/$file"
done
strip -o crates/python/data/scripts/mithras "$built"

"$tools/bin/maturin" build --locked --profile "$profile" --manifest-path crates/python/Cargo.toml \
    --features "$features" --interpreter "$python" --out "$made"
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
found = mithras.detect(slide, engine="rten")
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
