#!/usr/bin/env bash
# Several nodes on one machine, for as long as a command runs:
#
#     ./book cluster up HxL [--link RATE] [--fault FAULT] -- COMMAND...
#
#            node0                      node1                      node2           own node name, /etc/hosts,
#        ranks 0 1 ...              ranks L L+1 ...             ranks 2L ...       /tmp and /dev/shm; the book's
#        eth0 10.77.0.1             eth0 10.77.0.2             eth0 10.77.0.3      folder is shared by all
#             │ RATE                     │ RATE                     │ RATE
#     ┌───────┴──────────────────────────┴──────────────────────────┴───────┐
#     │                      br0, a switch in software                      │      leads nowhere else
#     └─────────────────────────────────────────────────────────────────────┘
#
# COMMAND runs on node0. `ssh node1 ...` works there, and mpirun starts L ranks on each of the H nodes, without an option.
# A node is a process with a network, a name and mounts of its own (namespaces), and a link is a veth pair; all of them
# belong to one namespace of processes, whose first process is this script. When that ends, however it ends, the kernel
# ends all the others, and nothing is left. The script's exit status is COMMAND's.
#
#     what runs where             script ── world ──┬── COMMAND, in the namespaces of node0
#                                                   ├── node0, node1, ...: each sleeps, and keeps its namespaces
#                                                   └── the fault, which waits for its moment
set -euo pipefail

script=$(readlink -f "${BASH_SOURCE[0]}")
book=$(cd "${script%/*}/.." && pwd)
PATH=$PATH:/usr/sbin:/sbin  # where ip and tc are on some systems
faults=(wrong-interface blocked-port unknown-name cut off)

say() { printf 'cluster: %s\n' "$*" >&2; }
fail() { say "$*" && exit 1; }
bad_input() { say "$*" && exit 2; }

usage() {
    cat <<'END'
./book cluster up HxL [--link RATE] [--fault FAULT] -- COMMAND...

makes H nodes of L ranks each on this machine, runs COMMAND on the first of them, and removes them when it has ended:

    ./book cluster up 2x2 -- ./book run 15                         two nodes with two ranks each
    ./book cluster up 2x2 --link 100Mbit -- ./book run 10          links as slow as an old switch
    ./book cluster up 2x2 --fault cut -- ./book run 15             somebody pulls the cable of node1
    ./book cluster up 2x2 -- bash                                  a shell on node0; try: ssh node1 hostname

The nodes share the folder of the book; each has its own /tmp. The faults of the last node, or of all:

    wrong-interface     every node has a second network, docker0, which leads to no other node
    blocked-port        every node has a firewall, which drops what comes to the ports 1024 to 32767
    unknown-name        /etc/hosts does not know the last node
    cut                 the cable of the last node is pulled when 16 MB have gone through it
    off                 the last node is switched off when 16 MB have gone through its cable
END
}

# ---- What was asked for --------------------------------------------------------------------------
nodes=    # H, 1 to 64
ranks=    # L, 1 to 64
link=     # a rate as tc takes it, or empty: as fast as the machine copies
fault=    # one of $faults, or empty
command=()

read_arguments() {
    local to_64='([1-9]|[1-5][0-9]|6[0-4])'
    [[ ${1:-} =~ ^${to_64}x${to_64}$ ]] ||
        bad_input "up takes nodes x ranks, from 1x1 to 64x64, such as 2x2, but not '${1:-}'."
    nodes=${BASH_REMATCH[1]} ranks=${BASH_REMATCH[2]}
    shift
    while (($#)) && [[ $1 != -- ]]; do
        case $1 in
            --link) link=${2:-} && check_link ;;
            --fault) fault=${2:-} && check_fault ;;
            *) bad_input "up does not take '$1'; it takes HxL, --link RATE, --fault FAULT, and -- before the command." ;;
        esac
        shift 2
    done
    command=("${@:2}")
    ((${#command[@]})) || bad_input "There is no command: up needs -- and what is to run on the nodes, such as -- ./book run 15."
}
check_link() {
    [[ $link =~ ^[1-9][0-9]*[KMG]bit$ ]] || bad_input "--link takes a rate such as 100Mbit or 1Gbit, but not '$link'."
}
check_fault() {
    [[ $fault && " ${faults[*]} " == *" $fault "* ]] || bad_input "--fault takes one of ${faults[*]}, but not '$fault'."
    [[ $nodes != 1 ]] || bad_input "--fault $fault needs two nodes at least: with one there is no network."
}

# ---- The world: a namespace of processes, mounts and networks -----------------------------------
world=()  # the command that makes it; what stands behind it becomes its first process
first=    # the process that began it

# Finds out whether root or a user namespace may make nodes here.
find_world() {
    local tool why own=(unshare --net --mount --pid --fork --kill-child --mount-proc)
    local try=(sh -c 'mount -t tmpfs tmpfs /run && ip link add name try0 type veth peer name try1')
    for tool in ip tc unshare nsenter setpriv; do
        command -v "$tool" >/dev/null || fail "This needs the program '$tool' (Debian: iproute2 and util-linux)."
    done
    # setpriv: the world dies with this script, even if that is killed.
    world=(setpriv --pdeathsig KILL "${own[@]}")
    why=$("${own[@]}" "${try[@]}" 2>&1) && return
    world=(unshare --user --map-root-user "${world[@]}")
    "${world[@]}" "${try[@]}" &>/dev/null ||
        fail "Nodes need root, or a system on which users may make namespaces (${why%%$'\n'*}): call this with sudo."
}

# Runs the command in a world of its own, ends with its exit status, and takes the world along when a signal comes.
run_world() {
    local status
    # In the background, where the shell hears signals; there a command would not hear Ctrl-C, and have no input.
    env --default-signal=INT,QUIT "${world[@]}" "$script" --world "$nodes" "$ranks" "$link" "$fault" "${command[@]}" <&0 &
    first=$!
    trap 'end_world 20' INT  # the command has heard Ctrl-C, too: two seconds for it to end
    trap 'end_world 0' TERM HUP
    while :; do  # a signal ends the wait, but not the world
        status=0
        wait "$first" 2>/dev/null || status=$?
        kill -0 "$first" 2>/dev/null || break
    done
    exit "$status"
}
end_world() {  # TENTHS of a second to wait
    local i
    for ((i = 0; i < $1; i++)); do
        kill -0 "$first" 2>/dev/null || return 0
        sleep 0.1
    done
    kill -KILL "$first" 2>/dev/null || true
}

# Is the first process of the world: makes the nodes, and runs the command on the first one.
be_world() {
    local i others='' status=0
    nodes=$1 ranks=$2 link=$3 fault=$4
    trap : INT  # Ctrl-C is for the command
    mount -t tmpfs tmpfs /run
    mount -t sysfs sysfs /sys  # /sys/class/net has the switch's ports
    mkdir /run/book /run/bin
    write_names
    ip link add name br0 mtu 9000 type bridge  # with packets of 1500 bytes two cores cannot keep up
    ip link set br0 up
    for ((i = 0; i < nodes; i++)); do make_node "$i"; done
    [[ -z $fault ]] || "make_${fault//-/_}"
    tell_mpi
    ((nodes == 1)) || others=" to node$((nodes - 1))"
    say "$nodes x $ranks ranks on node0 (10.77.0.1)$others${link:+, links of $link}${fault:+, fault: $fault}"
    # (What this shell would say of a command that is killed is for nobody.)
    { (enter node0 "${@:5}" 2>&3 3>&-) || status=$?; } 3>&2 2>/dev/null
    [[ ! -e /run/waits ]] || say "the fault has not come: less than 16 MB went through the cable of node$((nodes - 1))"
    exit "$status"
}
write_names() {
    local i
    echo "127.0.0.1 localhost" >/run/names
    for ((i = 0; i < nodes; i++)); do
        [[ $fault == unknown-name && $i == $((nodes - 1)) ]] || echo "10.77.0.$((i + 1)) node$i" >>/run/names
        echo "node$i slots=$ranks" >>/run/hostfile
    done
}

# ---- A node --------------------------------------------------------------------------------------
make_node() {  # NUMBER
    local name=node$1 ready process
    exec {ready}< <(exec unshare --net --uts --mount "$script" --host "$name")
    process=$!
    read -r _ <&"$ready"  # now its namespaces are there
    exec {ready}<&-
    echo "$process" >"/run/$name"
    ip link add name "$name" mtu 9000 type veth peer name eth0 mtu 9000 netns "$process"
    ip link set "$name" master br0 up
    on "$name" ip address add "10.77.0.$(($1 + 1))/24" dev eth0
    on "$name" ip link set eth0 up
    [[ -z $link ]] || shape "$name"
}
shape() {  # NODE: what it sends, and what it receives
    local limit=(root tbf rate "$link" burst 16kb limit 4mb)
    { on "$1" tc qdisc add dev eth0 "${limit[@]}" && tc qdisc add dev "$1" "${limit[@]}"; } ||
        fail "The kernel of this machine cannot make links of $link: leave --link out."
}

# Is a node: takes what is its own, says so, and sleeps.
be_node() {  # NAME
    hostname "$1"
    ip link set lo up
    echo 5 >/proc/sys/net/ipv4/tcp_retries2  # a connection is lost after 13 s without an answer, and not after 15 minutes
    cp /run/names "/run/names.$1"
    mount --bind "/run/names.$1" /etc/hosts
    mount -t tmpfs tmpfs /dev/shm
    mount -t sysfs sysfs /sys  # ... and here the node's interfaces
    # A /tmp of its own, in which the book is still there if it was before.
    mount --rbind "$book" /run/book
    mount -t tmpfs tmpfs /tmp
    mkdir -p "$book"
    mount --rbind /run/book "$book"
    echo ready
    exec sleep infinity >/dev/null
}

# Becomes a command on a node, in the same folder; `on` runs it there.
enter() {  # NODE COMMAND...
    # shellcheck disable=SC2016  # for the other shell
    exec nsenter --target "$(<"/run/$1")" --net --uts --mount sh -c 'cd "$0" && exec "$@"' "$PWD" "${@:2}"
}
on() { (enter "$@"); }

# ---- How ranks get to the nodes ------------------------------------------------------------------
# mpirun finds the nodes in a file, and starts a process on each of them by ssh. Here ssh is this script.
tell_mpi() {
    printf '#!/bin/sh\nexec "%s" --ssh "$@"\n' "$script" >/run/bin/ssh
    chmod +x /run/bin/ssh
    export PATH=/run/bin:$PATH DDP_HOSTFILE=/run/hostfile OMPI_MCA_orte_default_hostfile=/run/hostfile
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self,vader
    # Each node believes that all cores of the machine are its own: without this the first ranks of all nodes are bound to
    # the same core, and keep it busy while they wait.
    export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
    # A node that no longer answers is given up after 12 s, when ranks with a --timeout of 3 s have said so themselves
    # (after 13 s if something was on its way there: be_node). mpirun would wait for 8 minutes.
    export OMPI_MCA_oob_tcp_keepalive_time=4 OMPI_MCA_oob_tcp_keepalive_intvl=2 OMPI_MCA_oob_tcp_keepalive_probes=4
}

# Does what ssh would: finds the node by its name, asks whether it answers, and runs the command there in a fresh
# environment, of which only the paths are the caller's.
be_ssh() {  # [-x] NODE [COMMAND...]
    local node words=() status=0
    [[ $1 != -x ]] || shift
    node=$1
    getent ahosts "$node" >/dev/null || { echo "ssh: Could not resolve hostname $node: Name or service not known" >&2 && exit 255; }
    answers "$node" || { echo "ssh: connect to host $node port 22: No route to host" >&2 && exit 255; }
    words=("${@:2}")
    ((${#words[@]})) || words=(exec bash)
    cd /
    words=(env -i "PATH=$PATH" ${LD_LIBRARY_PATH:+"LD_LIBRARY_PATH=$LD_LIBRARY_PATH"} "HOME=${HOME:-/}" "TERM=${TERM:-dumb}" sh -c "${words[*]}")
    # (What this shell would say of a command that is killed is for nobody.)
    { (enter "$node" "${words[@]}" 2>&3 3>&-) || status=$?; } 3>&2 2>/dev/null
    [[ ! -e /run/$node.off ]] || hear_nothing "$node"
    exit "$status"
}
hear_nothing() {  # NODE: one that is switched off does not say so, and ssh notices late
    sleep 20
    echo "Timeout, server $1 not responding." >&2
    exit 255
}
answers() {  # NODE: one that refuses is there
    local said
    said=$(LC_ALL=C timeout 5 bash -c ": <>/dev/tcp/$1/22" 2>&1) || [[ $said == *refused* ]]
}

# ---- Faults --------------------------------------------------------------------------------------
last() { echo "node$((nodes - 1))"; }

# Containers leave such an interface on every node, and the same address: whoever connects to it reaches itself.
make_wrong_interface() {
    local i
    for ((i = 0; i < nodes; i++)); do
        on "node$i" ip link add name docker0 type bridge
        on "node$i" ip address add 172.17.0.1/16 dev docker0
        on "node$i" ip link set docker0 up
    done
}

# Routing drops what comes from outside to these ports. (It is asked before the table of own addresses, which is
# otherwise the first. Answers to connections of one's own come to ports above 32767.)
make_blocked_port() {
    local i
    for ((i = 0; i < nodes; i++)); do
        on "node$i" ip rule add pref 1 lookup local
        on "node$i" ip rule del pref 0
        on "node$i" ip rule add pref 0 iif eth0 ipproto tcp dport 1024-32767 blackhole
    done
}

make_unknown_name() { :; }  # write_names has left it out

make_cut() { when_busy pull_cable; }
make_off() { when_busy switch_off; }

when_busy() {  # FAULT: comes when 16 MB have gone through the last node's cable, in the middle of the work
    touch /run/waits
    come "$1" &
}
come() {  # FAULT
    until (($(<"/sys/class/net/$(last)/statistics/tx_bytes") > 16000000)); do sleep 0.05; done
    rm /run/waits
    "$1"
}
pull_cable() {
    ip link set "$(last)" down
    say "the cable of $(last) is pulled now"
}
switch_off() {  # every process of the node is killed, the last of them the one that keeps its namespaces
    local process off
    off=$(readlink "/proc/$(<"/run/$(last)")/ns/net")
    touch "/run/$(last).off"
    ip link delete "$(last)"
    for process in /proc/[0-9]*; do
        [[ $(readlink "$process/ns/net") != "$off" ]] || kill -KILL "${process#/proc/}"
    done
    say "$(last) is switched off now"
}

# ---- Here it starts ------------------------------------------------------------------------------
case ${1:-} in
    --world) be_world "${@:2}" ;;
    --host) be_node "$2" ;;
    --ssh) be_ssh "${@:2}" ;;
    '' | help | --help | -h) usage ;;
    *)
        read_arguments "$@"
        find_world
        run_world
        ;;
esac
