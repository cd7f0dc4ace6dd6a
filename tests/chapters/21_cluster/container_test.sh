#!/usr/bin/env bash
# The image of the labs: install.sh on a fresh Debian 12, which mmdebstrap makes, and ranks in it under Charliecloud, a runtime
# of containers that needs no root. An image takes five minutes of two cores, a network, and 1.2 GB.
#     container_test.sh OVERLAP       the program overlap of this build, whose bits the image's must be
# Exits with 77 where one of the tools is missing, or root.
# shellcheck disable=SC2016  # what stands in single quotes is for other shells
# shellcheck source=tests/chapters/21_cluster/script.sh
. "$(dirname "${BASH_SOURCE[0]}")/script.sh"

overlap=$1

for tool in mmdebstrap ch-run mpirun git; do
    command -v "$tool" >/dev/null || skip "'$tool' is not here (Debian: mmdebstrap, charliecloud-runtime, openmpi-bin, git)"
done
((EUID == 0)) || skip "an image with its packages takes root here"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
image=$scratch/image

# What this machine's apt knows of Debian 12 serves the image as well.
sources=()
if grep -q '^VERSION_CODENAME=bookworm$' /etc/os-release; then
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
        [[ ! -s $file ]] || sources+=("$file")
    done
fi
git -C "$root" -c safe.directory='*' archive --prefix=ddp_by_hand/ -o "$scratch/book.tar" HEAD || exit 1
mmdebstrap --variant=apt --customize-hook="tar-in $scratch/book.tar /opt" \
    --customize-hook='chroot "$1" bash /opt/ddp_by_hand/exercises/21_cluster/labs/container/install.sh' \
    bookworm "$image" "${sources[@]}" >"$scratch/log" 2>&1 || {
    tail -n 20 "$scratch/log"
    complain "the image was not made"
    exit 1
}

# hash COMMAND...: what the training of overlap ends with.
hash() { "$@" 2>/dev/null | sed -nE 's/.* equal to the bit: hash ([0-9a-f]+)$/\1/p'; }
program=/opt/ddp_by_hand/build/cpu/bin/overlap
export USER=${USER:-root} PMIX_MCA_gds=hash OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun=(mpirun --oversubscribe --bind-to none -np 2)

expected=$(hash "$overlap" --quick --ranks 2)
[[ $expected ]] || complain "there is no hash outside of the image"
check() {  # WHAT COMMAND...
    local found
    found=$(hash "${@:2}")
    [[ $found == "$expected" ]] || complain "$1: the hash is '$found', and outside of the image '$expected'"
}
check "threads" ch-run "$image" -- "$program" --quick --ranks 2
check "one container for all ranks of a node" "${mpirun[@]}" ch-run --join -b /run:/run "$image" -- "$program" --quick
check "a container for each rank" "${mpirun[@]}" sh -c \
    'DDP_NODE=$(hostname)-$OMPI_COMM_WORLD_RANK exec ch-run -b /run:/run "$0" -- "$1" --quick' "$image" "$program"

finish
