# A Slurm of one node in a temporary folder, `$work`, taken down at the end; to be sourced by what tries something on
# it. Needs root and Debian's slurm-wlm and munge, which it installs where it can; skips where Slurm cannot be had.
skip() { echo "SKIPPED: $*; nothing was tried" >&2; exit 77; }
fail() { echo "FAILED: $*" >&2; exit 1; }
note() { echo "== $*"; }
[ "$(id -u)" = 0 ] || skip "Slurm's daemons need root here"
if ! command -v slurmctld slurmd munged >/dev/null; then
    apt-get install -y --no-install-recommends slurm-wlm munge >/dev/null 2>&1 ||
        skip "slurm-wlm and munge cannot be installed"
fi

work=$(mktemp -d /tmp/slurm-try-XXXXXX)
full=$work/full
end() {
    for pid in "$work"/*.pid; do [ -s "$pid" ] && kill "$(cat "$pid")" 2>/dev/null; done
    for pid in $(steps) $(workers); do kill -9 "$pid" 2>/dev/null; done
    sleep 1
    mountpoint -q "$full" 2>/dev/null && umount -l "$full"
    if [ -n "${KEEP:-}" ]; then echo "kept: $work"; else rm -rf "$work"; fi
}
# Processes of tasks that work in this folder.
workers() { pgrep -f -- "(detect --list $work/.*--shard|train (pretrain|finetune) --preset $work/)" || true; }
# Slurm's own processes next to the tasks.
steps() {
    local p
    for p in $(pgrep slurmstepd); do
        { tr '\0' '\n' <"/proc/$p/environ"; } 2>/dev/null | grep -q "^SLURM_CONF=$work/" && echo "$p"
    done || true
}
trap end EXIT

# Slurm.
host=$(hostname -s) port=$((20000 + RANDOM % 20000))
mkdir -p "$work"/{state,spool,munge,slides}
chmod 755 "$work"; chmod 700 "$work/munge"
head -c 1024 /dev/urandom >"$work/munge/key"; chmod 400 "$work/munge/key"
munged --force --key-file="$work/munge/key" --socket="$work/munge.sock" --pid-file="$work/munged.pid" \
    --log-file="$work/munge/log" --seed-file="$work/munge/seed" || skip "munged does not start"
cat >"$work/slurm.conf" <<C
ClusterName=try
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
AuthInfo=socket=$work/munge.sock
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
SlurmdTimeout=20
KillWait=5
JobRequeue=1
NodeName=$host NodeAddr=127.0.0.1 CPUs=3 RealMemory=20000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
C
export SLURM_CONF=$work/slurm.conf
slurmctld -c || skip "slurmctld does not start"
slurmd || skip "slurmd does not start"
state() { sinfo --noheader --format=%T 2>/dev/null || true; }
for i in $(seq 60); do [[ $(state) == idle* ]] && break; sleep 1; done
[[ $(state) == idle* ]] || { tail -n 5 "$work"/slurm*.log >&2; skip "the node does not come up: $(state)"; }
note "Slurm $(sinfo --version) runs on $host, node $(state)"
