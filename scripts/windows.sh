#!/usr/bin/env bash
# Builds mithras.exe for Windows and tries it under Wine 64: demo, detect on an SVS, the viewer, recount, the start
# page; with umlauts, drive letters and read-only folders. Its figures must be those of this system's program.
#
#   scripts/windows.sh [--profile dev|release|dist] [--binary MITHRAS.EXE] [--here MITHRAS]
#
# Needs the target (rustup target add x86_64-pc-windows-gnu) and Debian's gcc-mingw-w64-x86-64; to try it, wine64. Where
# Wine is missing that is printed, and the exit code is 0. --here is this system's program [default:
# target/debug/mithras, if it is there].
set -euo pipefail
cd "$(dirname "$0")/.."

profile=dev binary="" here=target/debug/mithras
while [ $# -gt 0 ]; do
    case $1 in
        --profile) profile=$2; shift 2 ;;
        --binary) binary=$2; shift 2 ;;
        --here) here=$2; shift 2 ;;
        *) echo "windows: unknown argument $1" >&2; exit 2 ;;
    esac
done
target=x86_64-pc-windows-gnu
if [ -z "$binary" ]; then
    if ! command -v x86_64-w64-mingw32-gcc >/dev/null; then
        echo "windows: no cross-compiler: apt install gcc-mingw-w64-x86-64" >&2
        exit 2
    fi
    rustup target add $target >/dev/null 2>&1 || true
    cargo build --locked -p mithras-cli --profile "$profile" --target $target
    case $profile in dev) folder=debug ;; *) folder=$profile ;; esac
    binary=${CARGO_TARGET_DIR:-target}/$target/$folder/mithras.exe
fi
echo "$binary: $(stat -c %s "$binary") bytes"

wine=$(command -v wine64 || ls /usr/lib/wine/wine64 2>/dev/null || true)
if [ -z "$wine" ]; then
    echo "SKIPPED: mithras.exe was built and not tried: Wine 64 is missing (apt install wine64)"
    exit 0
fi
base=$(mktemp -d)
server=""
clean() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    WINEPREFIX=$base/prefix "${wine%/*}/wineserver" -k 2>/dev/null || true
    chmod -R u+w "$base" && rm -rf "$base"
}
trap clean EXIT
export WINEPREFIX=$base/prefix WINEDEBUG=-all
mkdir "$base/bin"
cp "$binary" "$base/bin/mithras.exe"
# Windows 7 and later have this library, Wine 8 has not.
if [ ! -e "${wine%/*}/../x86_64-linux-gnu/wine/x86_64-windows/bcryptprimitives.dll" ]; then
    printf '%s\n' '#include <windows.h>' '#include <ntsecapi.h>' \
        '__declspec(dllexport) BOOL WINAPI ProcessPrng(unsigned char *to, size_t n) { return RtlGenRandom(to, (ULONG)n); }' \
        >"$base/random.c"
    x86_64-w64-mingw32-gcc -shared -o "$base/bin/bcryptprimitives.dll" "$base/random.c" -ladvapi32
    export WINEDLLOVERRIDES="bcryptprimitives=n"
fi
mithras() { timeout 900 "$wine" "$base/bin/mithras.exe" "$@"; }
ok() { echo "ok  $*"; }
fail() { echo "windows: $*" >&2; exit 1; }

mithras --version >/dev/null 2>&1 || fail "it does not start: $(mithras --version 2>&1 | tail -n 3)"
ok "--version"

work="$base/Fälle öäüß"
mkdir "$work"
cd "$work"
mithras demo --size 1024,768 --figures 3 --seed 5 --quiet --out 'Z:'"${work//\//\\}"'\ergebnis' >/dev/null
[ -s ergebnis/summary.html ] || find . | head -20
[ -n "$(find ergebnis -name detections.csv)" ] || fail "demo wrote no detections"
ok "demo, into a path with a drive letter and umlauts"

# The figures of both systems: the same slides, the same model.
root=$OLDPWD
real=${MITHRAS_DATA:-$root/../shared/data}/slides/CMU-1-Small-Region.svs
slides=("$root/crates/slide/tests/golden/slides/svs_jpeg_420.svs")
if [ -f "$real" ]; then slides+=("$real"); else echo "SKIPPED: no real SVS at $real (MITHRAS_DATA); the drawn one is tried"; fi
mkdir nur-lesen
cp "${slides[@]}" nur-lesen/
chmod -R a-w nur-lesen
# rten's results do not depend on what Wine reports of the processor.
engine=(--model fast --engine rten --threads 2 --quiet --any-mpp)
mithras detect nur-lesen "${engine[@]}" --out lauf >/dev/null
ok "detect on ${#slides[@]} SVS, from a read-only folder"
program=$(cd "$root" && [ -x "$here" ] && realpath "$here" || true)
if [ -n "$program" ]; then
    "$program" detect nur-lesen "${engine[@]}" --out hier >/dev/null
    (cd hier && find . -name '*.csv') | while read -r table; do
        cmp "lauf/$table" "hier/$table" || fail "$table is not that of this system"
    done
    ok "all tables equal those of this system, byte for byte"
fi
mithras recount lauf --operating-point 0.5,0.5 --into neu >/dev/null
[ -s neu/counts.csv ] || fail "recount wrote no counts"
ok "recount at another operating point"

# Answers of a page: the first line of the output is its address.
page() {
    local log=$base/$1.log pattern=$2
    shift 2
    timeout 120 "$wine" "$base/bin/mithras.exe" "$@" --port 0 --no-browser >"$log" 2>&1 &
    server=$!
    for _ in $(seq 100); do
        grep -q '^http' "$log" && break
        sleep 0.2
    done
    local url
    url=$(grep -m 1 -o 'http[^[:space:]]*' "$log") || fail "no address: $(cat "$log")"
    curl -fsS "$url" | grep -qi "$pattern" || fail "$* has no page"
    kill "$server" 2>/dev/null || true
    server=""
}
page start "<html" start
ok "start: the page of a double click"
page view "<html" view lauf --slides nur-lesen
ok "view: the page of a run"
