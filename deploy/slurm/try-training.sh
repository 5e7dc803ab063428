#!/usr/bin/env bash
# Tries pretrain.sbatch and finetune.sbatch on a real Slurm of one node (one-node.sh): two tasks each on the
# processor, one of which is killed; the script begins again what is left. The curves must be those of one process
# that nothing happened to.
#
#   MITHRAS=target/debug/mithras deploy/slurm/try-training.sh
#
# Needs root and the training build. Reports SKIPPED and ends with 77 where one of them or Slurm is not there. GPUs
# are not tried: `gres` is overridden.
set -euo pipefail
cd "$(dirname "$0")/../.."
mithras=$(realpath "${MITHRAS:-target/debug/mithras}")
"$mithras" train pretrain --help >/dev/null 2>&1 || { echo "SKIPPED: $mithras is not a training build; nothing was tried" >&2; exit 77; }
. deploy/slurm/one-node.sh
export OMP_NUM_THREADS=1

# Crops of drawn figures and what resembles them; coloured discs in two classes.
mkdir "$work/bin" && ln -s "$mithras" "$work/bin/mithras"
PATH=$work/bin:$PATH python3 docs/tutorials/midog_layout.py "$work/drawn" --images 4 --side 1024 --figures 5 >/dev/null
"$mithras" corpus import --format midog-json "$work/drawn/MIDOG++.json" --images "$work/drawn/images" --out "$work/crops" >/dev/null
python3 deploy/slurm/discs.py "$work/data"
sed 's/^epochs = .*/epochs = 40/; s/^log_every = .*/log_every = 3/' presets/pretrain-smoke.toml >"$work/pretrain.toml"
cp presets/finetune-ami-br-vit-tiny.toml "$work/finetune.toml"
discs=(--fold 0 --set task=folder --set positive=marked --set model.image=32 --set model.drop_path=0.0 --set data.crop=21 --set data.folds=2
    --set train.batch=8 --set train.epochs=40 --set train.warmup_epochs=1.0 --set train.precision=f32)

job() { # file, more words
    MITHRAS=$mithras DEVICE=cpu sbatch --parsable --ntasks-per-node=2 --gres=none --cpus-per-task=1 --mem=2G --chdir="$PWD" \
        --output="$work/%x-%j.log" "$@"
}
ended() { [ -z "$(squeue --noheader --jobs "$1" 2>/dev/null)" ]; }
await() { # what is waited for, job, command...
    local what=$1 job=$2; shift 2
    for i in $(seq 2400); do
        "$@" && return
        ended "$job" && fail "the job ended before $what: $(tail -n 3 "$work"/*-"$job".log)"
        sleep 0.1
    done
    fail "waited too long for $what"
}
# The curves of two runs, but for times: equal to 1e-4.
same() { # columns, one, other
    python3 - "$@" <<'P'
import csv, sys
columns, *files = sys.argv[1:]
one, other = ([[r[c] for c in columns.split(",")] for r in csv.DictReader(open(f))] for f in files)
assert len(one) == len(other) and len(one) > 3, (len(one), len(other))
worst = 0.0
for a, b in zip(one, other):
    for x, y in zip(a, b):
        if x != y:
            worst = max(worst, abs(float(x) - float(y)) / max(1.0, abs(float(x))))
assert worst < 1e-4, f"{files} differ by {worst:g}"
print(f"== {len(one)} rows, at most {worst:.1e} apart")
P
}
# Runs a job, kills the task of this rank once `file` is there, waits for the end.
broken() { # name, rank, file, the job's number
    local name=$1 rank=$2 file=$3 id=$4 pid
    await "the first steps of $name" "$id" test -s "$file"
    for pid in $(workers); do
        tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "SLURM_PROCID=$rank" || continue
        tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q "^$mithras " || continue
        kill -9 "$pid" && note "$name: killed task $rank" && break
    done
    for i in $(seq 6000); do ended "$id" && break; sleep 0.1; done
    grep -h "steps are whole\|^try \|CANCELLED\|error:" "$work"/*-"$id".log | cut -c1-220 | sort | uniq -c || true
    grep -q "^try 1 ended" "$work"/*-"$id".log || fail "the first try of $name was not broken off"
}

note "pretraining"
begun=$SECONDS
"$mithras" train pretrain --preset "$work/pretrain.toml" --corpus "$work/crops" --out "$work/pretrain-one" --device cpu --threads 1 --workers 1 \
    >"$work/one.log" 2>&1 || fail "$(tail -n 3 "$work/one.log")"
note "one process: $((SECONDS - begun)) s"
export PRESET=$work/pretrain.toml CORPUS=$work/crops OUT=$work/pretrain
begun=$SECONDS
broken pretrain 1 "$OUT/terms.csv" "$(job deploy/slurm/pretrain.sbatch)"
[ -e "$OUT/encoder.safetensors" ] || fail "no encoder: $(tail -n 5 "$work"/mithras-pretrain-*.log)"
note "two tasks, one killed: $((SECONDS - begun)) s"
same step,lr,grad_norm,total "$work/pretrain-one/terms.csv" "$OUT/terms.csv"

note "fine-tuning"
begun=$SECONDS
"$mithras" train finetune --preset "$work/finetune.toml" --data "$work/data" --out "$work/finetune-one" --device cpu --threads 1 "${discs[@]}" \
    >"$work/one.log" 2>&1 || fail "$(tail -n 3 "$work/one.log")"
note "one process: $((SECONDS - begun)) s"
export PRESET=$work/finetune.toml DATA=$work/data OUT=$work/finetune
begun=$SECONDS
# This time the task that writes the files: the other has no state to keep, and all continue from the last one that
# was stored.
broken finetune 0 "$OUT/fold-0/metrics.csv" "$(job deploy/slurm/finetune.sbatch "${discs[@]}")"
[ -e "$OUT/fold-0/predictions.csv" ] || fail "no predictions: $(tail -n 5 "$work"/mithras-finetune-*.log)"
note "two tasks, the first killed: $((SECONDS - begun)) s"
same step,kind,loss,metric,lr "$work/finetune-one/fold-0/metrics.csv" "$OUT/fold-0/metrics.csv"
note "all held"
