#!/usr/bin/env bash
# Runs deploy/slurm on a Slurm of one node on this machine (Debian: slurm-wlm, munge; as
# root): an array of four of which one task is killed and requeued, then the merge, and
# compares its rows with one run's, bit for bit. GLMBATCH names the program.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$(realpath "${GLMBATCH:-bin/glmbatch}")
rows=${ROWS:-200}
work=$(mktemp -d)
mkdir -p "$work/bin" "$work/state" "$work/spool"
ln -s "$program" "$work/bin/glmbatch"
export PATH=$work/bin:$PATH SLURM_CONF=$work/slurm.conf
host=$(hostname -s)
cat > "$SLURM_CONF" <<CONF
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmctldParameters=enable_configless
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
dd if=/dev/urandom of="$work/munge.key" bs=1024 count=1 status=none
chmod 400 "$work/munge.key"; chmod 755 "$work"
pids=()
end() {
  for p in "${pids[@]}" $(cat "$work"/slurm*.pid 2>/dev/null); do kill "$p" 2>/dev/null || true; done
  wait # they write as they end
  [ -n "${KEEP:-}" ] || rm -rf "$work"
}
trap end EXIT
munged --foreground --force --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munged.pid" \
  --log-file="$work/munged.log" --seed-file="$work/munged.seed" & pids+=($!)
for _ in $(seq 100); do [ -S "$work/munge.socket" ] && break; sleep 0.1; done
slurmctld -D & pids+=($!)
slurmd -D -N "$host" & pids+=($!)
for _ in $(seq 100); do sinfo -h -o %t 2>/dev/null | grep -q idle && break; sleep 0.2; done
sinfo

cp datasets/demo/prompts.parquet "$work/prompts.parquet"
common=(--limit "$rows" --quiet --timeline off)
glmbatch run "$work/prompts.parquet" --out "$work/whole" "${common[@]}"
id=$(sbatch --parsable --chdir="$work" --array=0-3 deploy/slurm/job.sbatch "$work/prompts.parquet" "" "$work/job" "${common[@]}")
merge=$(sbatch --parsable --chdir="$work" --dependency=afterok:"$id" deploy/slurm/merge.sbatch "$work/job")
echo "array $id, merge $merge"
# The first task is killed without a word once it has begun, and requeued.
for _ in $(seq 300); do [ -e "$work/job/shards/00000-of-00004/_manifest.json" ] && break; sleep 0.1; done
glmbatch status "$work/job" | tail -8
pid=$(sed -n 's/.*"pid":\([0-9]*\).*/\1/p' "$work/job/shards/00000-of-00004/.lock")
echo "kill -KILL $pid, and requeue ${id}_0"
kill -KILL "$pid"
scontrol requeue "${id}_0"
for _ in $(seq 1200); do [ -e "$work/job/_SUCCESS" ] && break; sleep 0.2; done
squeue -a || true
cat "$work"/glmbatch-*.log
glmbatch status "$work/job"
python3 interop/same_rows.py "$work/whole/outputs" "$work/job/outputs"
