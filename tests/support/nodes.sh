#!/usr/bin/env bash
# Several nodes on one machine, for tests: each is a network namespace with its own node name and address,
# joined to the others by a bridge. What ranks of different nodes say to each other crosses that network.
#     tests/support/nodes.sh [--rate RATE] N COMMAND...
# runs COMMAND on node0 of nodes node0 to node(N-1); `mpirun --host node0,node1 ...` in it starts ranks there.
# RATE (100mbit, say) limits what each node sends and receives. When COMMAND has ended nothing is left, however
# it ends, and its exit code is this script's; 77 where a machine does not let us make such nodes.
# shellcheck disable=SC2016  # what stands in '...' is for another shell
set -euo pipefail

skip() {
    echo "no nodes can be made here: $*" >&2
    exit 77
}

on_node() {  # on_node NAME COMMAND...: becomes the command
    exec ip netns exec "$1" unshare --uts sh -c 'hostname "$1"; shift; exec "$@"' sh "$@"
}

make_switch() {
    ip netns add switch
    ip -n switch link add br0 mtu 9000 type bridge  # with 1500, two cores cannot keep up with the packets
    ip -n switch link set br0 up
}

make_node() {  # make_node NUMBER RATE
    local node=node$1 rate=$2
    ip netns add "$node"
    ip -n switch link add "$node" mtu 9000 type veth peer name eth0 mtu 9000 netns "$node"
    ip -n switch link set "$node" master br0 up
    ip -n "$node" link set lo up
    ip -n "$node" address add "10.77.0.$(($1 + 1))/24" dev eth0
    ip -n "$node" link set eth0 up
    echo "10.77.0.$(($1 + 1)) $node" >>/run/nodes
    [[ -z $rate ]] || for end in "$node eth0" "switch $node"; do
        tc -n "${end% *}" qdisc add dev "${end#* }" root tbf rate "$rate" burst 16kb limit 4mb
    done
}

tell_mpi() {
    # mpirun calls this as it would call ssh: with a node and a line for its shell.
    printf '#!/bin/sh\nnode=$1; shift\nexec "%s" --on "$node" sh -c "$*"\n' "$script" >/run/agent
    chmod +x /run/agent
    export OMPI_MCA_plm_rsh_agent=/run/agent OMPI_MCA_orte_tmpdir_base=/run
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_oob_tcp_if_include=10.77.0.0/24 OMPI_MCA_btl_tcp_if_include=10.77.0.0/24
    export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self,vader
    # Each node believes that it has the machine's cores to itself: without this the first ranks of all
    # nodes are bound to the same core, and spin there.
    export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
}

script=$(readlink -f "${BASH_SOURCE[0]}")
case $1 in
    --on)
        shift
        on_node "$@"
        ;;
    --inside)  # a namespace of processes, mounts and networks of its own, which ends with this process
        rate=$2 nodes=$3
        shift 3
        mount -t tmpfs tmpfs /run
        mount -t tmpfs tmpfs /dev/shm  # where MPI names its segments as it does in every such namespace
        mkdir /run/netns
        echo "127.0.0.1 localhost" >/run/nodes
        make_switch
        for ((i = 0; i < nodes; i++)); do make_node "$i" "$rate"; done
        mount --bind /run/nodes /etc/hosts
        tell_mpi
        on_node node0 "$@"
        ;;
esac

rate=
if [[ $1 == --rate ]]; then
    rate=$2
    shift 2
fi
for tool in ip tc unshare; do
    command -v "$tool" >/dev/null || skip "'$tool' is not here (Debian: iproute2, util-linux)"
done
own=(unshare --net --mount --pid --fork --mount-proc)
try=(sh -c 'mount -t tmpfs tmpfs /run && mkdir /run/netns && ip netns add try && ip link add name a type veth peer name b')
why=$("${own[@]}" "${try[@]}" 2>&1) || {
    own=("${own[0]}" --user --map-root-user "${own[@]:1}")
    "${own[@]}" "${try[@]}" >/dev/null 2>&1 || skip "$why"
}
exec "${own[@]}" --kill-child "$script" --inside "$rate" "$@"
