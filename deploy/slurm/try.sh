#!/usr/bin/env bash
# Tries `mithras slurm` on a real Slurm of one node, made in a temporary folder and taken down at the end:
# drawn slides in shards, with a worker killed, the node gone for a while, and a full disk. The tables and
# every slide's files must equal those of one process.
#
#   MITHRAS=target/debug/mithras MODEL=crates/infer/tests/golden/tiny deploy/slurm/try.sh [SLIDES]
#
# Needs root (daemons, a small tmpfs). Reports SKIPPED and ends with 77 where Slurm cannot be had.
set -euo pipefail
cd "$(dirname "$0")/../.."
mithras=$(realpath "${MITHRAS:-target/debug/mithras}")
model=$(realpath "${MODEL:-crates/infer/tests/golden/tiny}")
slides=${1:-200} shards=8
[ -x "$mithras" ] || { echo "FAILED: $mithras is not there; build it first" >&2; exit 1; }
. deploy/slurm/one-node.sh

# Slides: four drawings, each under several names.
note "drawing $slides slides"
for seed in $(seq 4); do
    "$mithras" demo --draw-only --out "$work/drawn/$seed" --size 520,520 --figures 1 --tissue-mm2 0.004 --seed "$seed" 2>"$work/draw.log" || fail "$(tail -n 1 "$work/draw.log")"
done
echo "slide,patient" >"$work/slides.csv"
for i in $(seq "$slides"); do
    ln "$work/drawn/$((i % 4 + 1))/drawn.tiff" "$work/slides/s$i.tiff"
    echo "slides/s$i.tiff,P$i" >>"$work/slides.csv"
done
flags=(--model "$model" --engine rten)
note "one process"
time "$mithras" detect --list "$work/slides.csv" --out "$work/one" --threads 1 --log json "${flags[@]}" \
    2>"$work/one.log" >"$work/one.out"
tail -n 1 "$work/one.log"

submit() { # OUT
    "$mithras" slurm --list "$work/slides.csv" --out "$1" --shards "$shards" --log json --sbatch=--cpus-per-task=1 \
        --sbatch=--mem=1G -- "${flags[@]}"
}
count() { find "$1" -maxdepth 2 -name counts.json 2>/dev/null | wc -l; }
await() { # what is waited for, command...
    local what=$1; shift
    for i in $(seq 1200); do
        "$@" && return
        kill -0 "$watcher" 2>/dev/null || fail "all ended before $what; more slides are needed"
        sleep 0.25
    done
    fail "waited too long for $what"
}
same() { # OUT
    cmp "$work/one/counts.csv" "$1/counts.csv" || fail "counts.csv of $1 differs"
    local i
    for i in $(seq "$slides"); do
        diff -rq --exclude=state.json --exclude=.lock "$work/one/s$i" "$1/s$i" || fail "slide s$i of $1 differs"
    done
    note "tables and files of all $slides slides are those of one process"
}

out=$work/dry
submit_dry=$("$mithras" slurm --list "$work/slides.csv" --out "$out" --dry-run)
[ -z "$(squeue --noheader)" ] && bash -n "$submit_dry" || fail "a dry run submits nothing and writes a whole script"

out=$work/out
note "a worker is killed, then the node goes"
submit "$out" 2>"$work/out.log" >"$work/out.txt" & watcher=$!
more_than() { [ "$(count "$out")" -ge "$1" ]; }
await "the first slides" more_than $((slides / 10))
kill_one() { # it may end by itself in between
    local shard
    victim=$(workers | tail -n 1)
    shard=$(tr '\0' ' ' 2>/dev/null <"/proc/$victim/cmdline" | grep -o -- '--shard [0-9/]*') &&
        kill -9 "$victim" && note "killed worker $victim: $shard"
} 2>/dev/null
await "a worker to kill" kill_one
await "more slides" more_than $((slides * 3 / 10))
note "the node goes with $(workers | wc -w) workers, $(count "$out") slides done"
kill -9 "$(cat "$work/slurmd.pid")" $(steps) $(workers) 2>/dev/null || true
is_down() { [[ $(state) == down* ]]; }
await "Slurm to miss the node" is_down
note "node $(state); queue: $(squeue --noheader --array --format=%T | sort | uniq -c | tr '\n' ' ')"
slurmd
is_up() { [[ $(state) == idle* || $(state) == mixed* || $(state) == alloc* ]]; }
await "the node" is_up
note "node $(state)"
code=0; wait "$watcher" || code=$?
grep -o '"text":"shard [^"]*' "$work/out.log" || true
grep -h '"event":"ended"' "$work/out.log"
[ "$code" = 0 ] || { tail -n 3 "$work/out.log"; fail "mithras slurm ended with $code"; }
echo "jobs: $(grep -o '"job": "[0-9]*"' "$out/.slurm/jobs.json" | grep -o '[0-9]*' | tr '\n' ' ')"
same "$out"

note "a full disk"
mkdir "$full"
need=$(du -sk "$work/one" | cut -f1)
if mount -t tmpfs -o "size=$((need * 4 / 10))k" tmpfs "$full" 2>/dev/null; then
    submit "$full" 2>"$work/full.log" >"$work/full.txt" & watcher=$!
    is_full() { grep -qs "No space left" "$full"/.slurm/*.log || [ "$(df --output=avail "$full" | tail -n 1)" -lt 8 ]; }
    await "the disk to be full" is_full
    sleep 3
    note "full: $(df --output=size,avail "$full" | tail -n 1) KiB, $(count "$full") slides; making room"
    mount -o remount,size=2g "$full"
    code=0; wait "$watcher" || code=$?
    grep -o '"text":"shard [^"]*' "$work/full.log" | cut -c1-200 || true
    [ "$code" = 0 ] || { tail -n 3 "$work/full.log"; fail "mithras slurm ended with $code after a full disk"; }
    same "$full"
else
    echo "SKIPPED: no tmpfs can be mounted; a full disk was not tried" >&2
fi
note "all held"
