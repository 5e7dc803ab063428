#!/usr/bin/env bash
# Builds mithras.exe for Windows and tries it under Wine 64: demo, detect on an SVS, the viewer with its tiles, recount,
# and the start page of a double click with a whole run from it; with umlauts, drive letters and a read-only disc. Its
# figures must be those of this system's program.
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
    # What is unused on Windows alone is seen nowhere else.
    RUSTFLAGS="${RUSTFLAGS:-} -D warnings" cargo build --locked -p mithras-cli --profile "$profile" --target $target
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
    # Programs of Wine that are still there hold the disc.
    WINEPREFIX=$base/prefix "${wine%/*}/wineserver" -k -w 2>/dev/null || true
    cd /
    ! mountpoint -q "$base/Fälle öäüß/nur-lesen" 2>/dev/null || umount "$base/Fälle öäüß/nur-lesen"
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
# Root may write where no one may, so the disc itself is made read-only.
if mount --bind nur-lesen nur-lesen 2>/dev/null && mount -o remount,ro,bind nur-lesen 2>/dev/null; then
    ! touch nur-lesen/a 2>/dev/null || fail "the disc is not read-only"
else
    echo "SKIPPED: a read-only disc cannot be mounted here (root may); the files are read-only"
    chmod -R a-w nur-lesen
fi
# A path as Windows writes it.
drive() { echo "Z:${1//\//\\}"; }
# rten's results do not depend on what Wine reports of the processor.
engine=(--model fast --engine rten --threads 2 --quiet --any-mpp)
mithras detect "$(drive "$work/nur-lesen")" "${engine[@]}" --out "$(drive "$work/lauf")" >/dev/null
ok "detect on ${#slides[@]} SVS by a drive letter, from a read-only disc"
program=$(cd "$root" && [ -x "$here" ] && realpath "$here" || true)
if [ -n "$program" ]; then
    "$program" detect nur-lesen "${engine[@]}" --out hier >/dev/null
    (cd hier && find . -name '*.csv') | while read -r table; do
        cmp "lauf/$table" "hier/$table" || fail "$table is not that of this system"
    done
    ok "all tables equal those of this system, byte for byte"
fi
mithras recount "$(drive "$work/lauf")" --operating-point 0.5,0.5 --into neu >/dev/null
[ -s neu/counts.csv ] || fail "recount wrote no counts"
ok "recount at another operating point"
mithras report "$(drive "$work/lauf")" --out "$(drive "$work/berichte")" >/dev/null
[ "$(head -c 4 berichte/svs_jpeg_420.pdf)" = %PDF ] || fail "report wrote no PDF"
ok "report"

# What curl writes is read to the end: `grep -q` stops early, and curl then fails.
# served NAME ARGUMENTS: starts a page and sets `url`; the first line of the output is its address.
served() {
    local log=$base/$1.log
    shift
    timeout 600 "$wine" "$base/bin/mithras.exe" "$@" >"$log" 2>&1 &
    server=$!
    for _ in $(seq 150); do
        grep -q 'http' "$log" && break
        sleep 0.2
    done
    url=$(grep -m 1 -o 'http[^[:space:]]*' "$log") || fail "no address: $(cat "$log")"
}
ended() {
    kill "$server" 2>/dev/null || true
    server=""
}

# What a double click does: no argument. The browser of Wine is not there, so the address is taken from the output.
served double
curl -fsS "$url" | grep -i "<html" >/dev/null || fail "a double click has no page"
ended
ok "a double click: the start page"

# A run as the page starts it, by the same requests.
served start start --no-browser --port 0 --model fast --engine rten --threads 2 --out "$(drive "$work/von-der-seite")"
python3 - "$url" "$(drive "$work/nur-lesen")" "$(drive "$work/von-der-seite/lauf")" <<'P'
import json, sys, time, urllib.request

url, slides, out = sys.argv[1:]


def ask(path, body=None):
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(f"{url.rstrip('/')}/{path}", data, {"Content-Type": "application/json"})
    try:
        return json.load(urllib.request.urlopen(request, timeout=60))
    except urllib.error.HTTPError as e:
        sys.exit(f"windows: {path}: {e.read().decode()}")


names = [e["name"] for e in ask("api/list", {"path": slides})["entries"]]
assert "svs_jpeg_420.svs" in names, names
chosen = ask("api/choose", {"paths": [slides + "\\svs_jpeg_420.svs"]})
ids = [s["id"] for s in chosen["slides"]]
model = ask("api/begin")["models"][0]["name"]
# Regions that are drawn before anything is searched, kept below the folder for the results.
viewer = ask("api/view", {"path": slides + "\\svs_jpeg_420.svs", "out": out})
one = ask(viewer["url"] + "api/index")["slides"][0]
ring = [[0, 0], [one["width"], 0], [one["width"], one["height"] / 2], [0, one["height"] / 2]]
region = {"name": "oben", "class": "", "exclude": False, "ring": ring}
ask(viewer["url"] + "api/regions", {"reviewer": "anna", "slide": 0, "regions": [region]})
assert ask("api/drawn", {"path": viewer["regions"]})["found"], viewer
plan = {"slides": ids, "regions": viewer["regions"], "model": model, "point": None, "mpp": 0.25, "out": out, "existing": "refuse"}
ask("api/start", plan)
for _ in range(3000):
    now = ask("api/run")
    if now["phase"] not in ("opening", "running", "cancelling"):
        break
    time.sleep(0.1)
assert now["phase"] == "done", now
P
ended
[ -n "$(find von-der-seite -name detections.csv)" ] || fail "the page's run wrote no detections"
grep -q oben von-der-seite/lauf/regions.csv || fail "the page's run was not in the drawn regions"
ok "start: regions drawn, and a run in them"

served view view "$(drive "$work/lauf")" --slides "$(drive "$work/nur-lesen")" --port 0 --no-browser
curl -fsS "$url" | grep -i "<html" >/dev/null || fail "the viewer has no page"
curl -fsS "${url%/}/api/index" | grep svs_jpeg_420 >/dev/null || fail "the viewer does not list the slide"
id=$(curl -fsS "${url%/}/api/index" | python3 -c 'import json, sys
slides = json.load(sys.stdin)["slides"]
print(next(i for i, s in enumerate(slides) if "svs_jpeg_420" in json.dumps(s)))')
curl -fsS "${url%/}/tile/$id/0/0_0.jpg" >"$base/tile.jpg" || fail "the viewer has no tile"
[ "$(head -c 2 "$base/tile.jpg" | od -An -tx1 | tr -d ' ')" = ffd8 ] || fail "the tile is not a JPEG"
ended
ok "view: the page of a run, its list and a tile"
