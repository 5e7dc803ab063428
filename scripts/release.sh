#!/usr/bin/env bash
# Makes what is handed out: a stripped binary with man pages, completions, bill of materials, licences
# and checksums, as one archive.
#
#   scripts/release.sh [--profile dist|release|dev] [--target TRIPLE] [--binary FILE] [--out DIR]
#
# --target x86_64-unknown-linux-gnu.2.31 builds with `cargo zigbuild` against the C library of Debian 11
# (pip install ziglang cargo-zigbuild); any other target with cargo alone, against this machine's.
# --binary takes a program that was built before.
# Exit code 3: everything was made, but the binary needs a newer C library than Debian 11 has.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=dist target="" binary="" out=dist
while [ $# -gt 0 ]; do
    case $1 in
        --profile) profile=$2; shift 2 ;;
        --target) target=$2; shift 2 ;;
        --binary) binary=$2; shift 2 ;;
        --out) out=$2; shift 2 ;;
        *) echo "release: unknown argument $1" >&2; exit 2 ;;
    esac
done
host=$(rustc -vV | sed -n 's/^host: //p')
# The C library that the binary may ask for at most: Debian 11, RHEL 9 and Ubuntu 20.04 have it.
oldest=2.31

command=build
case $target in
    *-gnu.[0-9]*)
        if ! command -v cargo-zigbuild >/dev/null; then
            echo "release: $target needs cargo-zigbuild: pip install ziglang cargo-zigbuild" >&2
            exit 2
        fi
        command=zigbuild ;;
esac
[ -n "$binary" ] || cargo "$command" --locked -p mithras-cli --profile "$profile" ${target:+--target "$target"}
triple=$(sed 's/\.[0-9][0-9.]*$//' <<<"${target:-$host}")
case $profile in dev) folder=debug ;; *) folder=$profile ;; esac
built=${binary:-${CARGO_TARGET_DIR:-target}/${target:+$triple/}$folder/mithras}

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
name=mithras-$version-$triple
rm -rf "${out:?}/$name" "$out/$name.tar.gz"
mkdir -p "$out/$name/share"
cp "$built" "$out/$name/mithras"
strip "$out/$name/mithras"
# Relocatable: it names no folder of this machine to the loader, and no library that is not everywhere.
if readelf -d "$out/$name/mithras" | grep -E 'RPATH|RUNPATH'; then
    echo "release: the binary names folders of this machine" >&2
    exit 1
fi
strange=$(readelf -d "$out/$name/mithras" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -vE '^(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux-.*)\.so' || true)
if [ -n "$strange" ]; then
    echo "release: the binary needs libraries that are not everywhere: $strange" >&2
    exit 1
fi
cp LICENSE-APACHE LICENSE-MIT NOTICE README.md CHANGELOG.md "$out/$name/"
"$out/$name/mithras" manual --out "$out/$name/share"
python3 scripts/sbom.py --out "$out/$name" --target "$triple"

# A static program has none.
newest=$(objdump -T "$out/$name/mithras" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -n 1 || true)
echo "$name: $(stat -c %s "$out/$name/mithras") bytes, needs glibc ${newest:-none}"

(cd "$out/$name" && find . -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs sha256sum >SHA256SUMS)
tar -C "$out" --sort=name --owner=0 --group=0 --numeric-owner -czf "$out/$name.tar.gz" "$name"
(cd "$out" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
echo "$out/$name.tar.gz"

if [ -n "$newest" ] && [ "$(printf '%s\n' "$oldest" "$newest" | sort -V | tail -n 1)" != "$oldest" ]; then
    echo "release: glibc $newest is newer than Debian 11's $oldest: symbols" >&2
    objdump -T "$out/$name/mithras" | awk -v most="$oldest" '
        match($0, /GLIBC_[0-9.]+/) {
            split(substr($0, RSTART + 6, RLENGTH - 6), v, "."); split(most, m, ".")
            if (v[1] > m[1] || v[1] == m[1] && v[2] > m[2]) print "  " $NF, substr($0, RSTART, RLENGTH)
        }' | sort -u >&2
    echo "release: build on Debian 11, or with --target $host.$oldest" >&2
    exit 3
fi
