#!/usr/bin/env bash
# A Slurm on the nodes of `./book cluster up HxL`, for as long as a command runs:
#     ./book cluster up 4x2 -- tests/chapters/21_cluster/slurm.sh COMMAND...
# slurmctld runs on node0 with COMMAND, and a slurmd on each node, which lends as many processors as the node has ranks.
# Nothing needs to be ended: all of it ends with the nodes. Exits with 77 where Slurm cannot run.
set -euo pipefail

skip() {
    echo "$*"
    exit 77
}

PATH=$PATH:/usr/sbin
for tool in munged slurmctld slurmd srun; do
    command -v "$tool" >/dev/null || skip "Slurm is not here: no $tool (Debian: slurmctld, slurmd, slurm-client and munge)"
done
grep -q '^ *0 *0 ' /proc/self/uid_map || skip "Slurm's daemons want to be root, and here root is another user"
ls /usr/lib/*/slurm-wlm/mpi_pmix*.so &>/dev/null || skip "this Slurm has no PMIx"

mapfile -t nodes < <(awk '{ print $1 }' "$DDP_HOSTFILE")
cpus=$(sed -n '1s/.*slots=//p' "$DDP_HOSTFILE")
home=/run/slurm  # all nodes share /run
export SLURM_CONF=$home/slurm.conf
mkdir -p "$home/state"
chmod 755 "$home"  # munged wants the folder of its socket open to all
echo "CgroupPlugin=cgroup/v1" >"$home/cgroup.conf"  # none is used; this one loads where none is mounted
(umask 077 && head -c 1024 /dev/urandom >"$home/munge.key")
# PMIx makes a folder of the same name on each node: TmpFS keeps them apart. Without cgroups Slurm binds no processor.
cat >"$SLURM_CONF" <<END
ClusterName=lab
SlurmctldHost=node0
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$home/munge.socket
CredType=cred/munge
StateSaveLocation=$home/state
SlurmctldPidFile=$home/slurmctld.pid
SlurmctldLogFile=$home/slurmctld.log
SlurmdSpoolDir=$home/spool.%n
SlurmdPidFile=$home/slurmd.%n.pid
SlurmdLogFile=$home/slurmd.%n.log
TmpFS=$home/tmp.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=pmix
ReturnToService=2
KillWait=2
SlurmdTimeout=15
SchedulerParameters=bf_interval=1,sched_min_interval=200000
$(for node in "${nodes[@]}"; do echo "NodeName=$node CPUs=$cpus RealMemory=256"; done)
PartitionName=lab Nodes=ALL Default=YES MaxTime=30 State=UP
END

# What went wrong stands in the last lines of the logs.
trap 'tail -q -n 3 "$home"/*.log >&2' ERR
munged --socket="$home/munge.socket" --key-file="$home/munge.key" --pid-file="$home/munged.pid" \
    --log-file="$home/munged.log" --seed-file="$home/munge.seed"
slurmctld
for node in "${nodes[@]}"; do
    mkdir "$home/tmp.$node" "$home/spool.$node"
    ssh "$node" SLURM_CONF="$SLURM_CONF" slurmd -N "$node"
done
for ((i = 0; i < 200; i++)); do
    [[ $(sinfo --noheader --states=idle --format=%D) != "${#nodes[@]}" ]] || break
    sleep 0.1
done
((i < 200)) || { echo "not all nodes are idle after 20 s: $(sinfo)" >&2 && false; }
trap - ERR
"$@"
