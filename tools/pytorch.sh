# Sourced by ./book: a PyTorch of the book's own, for what it says of your own script: setup, predict and read.
# shellcheck shell=bash disable=SC2154  # what is not set here, ./book sets

setup() {
    local python log
    [[ $* == pytorch ]] || bad_input "setup takes what is to be set up; there is: pytorch."
    python=$root/build/pytorch/bin/python
    log=$root/build/pytorch.log
    mkdir -p "$root/build"
    if [[ ! -x $python ]]; then
        python3 -c 'import ensurepip, venv' 2>/dev/null || fail "setup needs a python3 that can make virtual environments: apt install python3-venv."
        python3 -m venv "$root/build/pytorch" >"$log" 2>&1 || fail "No virtual environment can be made in build/pytorch: build/pytorch.log says why."
    fi
    install() { "$python" -m pip install --quiet --disable-pip-version-check "$@" >>"$log" 2>&1; }
    imports() { "$python" -c 'import torch, torch.distributed, sys; sys.exit(not torch.distributed.is_gloo_available())' >>"$log" 2>&1; }
    if ! imports; then
        # PyPI's PyTorch for Linux is built for CUDA, but on a CPU, beside a CUDA Toolkit, it needs little of what it asks for.
        say "fetching PyTorch and what it needs on a CPU (some 540 MB) into build/pytorch ..."
        install --no-deps torch || fail "PyTorch could not be fetched: build/pytorch.log says why."
        install numpy typing_extensions sympy networkx jinja2 fsspec filelock 'setuptools>=77' expecttest || true
        install --no-deps nvidia-cufile nvidia-cusparselt-cu13 nvidia-nvshmem-cu13 nvidia-nccl-cu13 || true
    fi
    if ! imports; then
        say "it does not start without the CUDA libraries: fetching all that it asks for (some 3 GB) ..."
        install torch numpy expecttest || fail "PyTorch's parts could not be fetched: build/pytorch.log says why."
        imports || fail "PyTorch is in build/pytorch and does not start: build/pytorch.log says why."
    fi
    rm -rf "$root/build/your_job"  # setuptools leaves files behind where it builds
    mkdir "$root/build/your_job"
    cp "$root/chapters/23_your_job"/{pyproject.toml,README.md,ddp_*.py} "$root/build/your_job"
    install --no-deps "$root/build/your_job" || fail "The chapter's own files could not be installed: build/pytorch.log says why."
    say "PyTorch $("$python" -c 'import torch; print(torch.__version__)') is in build/pytorch; torchrun is build/pytorch/bin/torchrun."
}

predict() {
    prepare bench
    build "the prediction" cluster_predict
    measure predict "$folder/bin/cluster_predict" "$@"
}

read_dumps() {  # `read` is the shell's own
    if (($# == 0)) || [[ $1 == -* ]]; then bad_input "read takes the flight-recorder dumps of all ranks, or their profiler's traces: one file each."; fi
    command -v python3 >/dev/null || fail "read needs a python3."
    exec python3 -B "$root/chapters/23_your_job/read_dumps.py" "$@"
}
