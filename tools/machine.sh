# Sourced by ./book: what this machine has, which mode a run takes, and the installing of what is missing.
# shellcheck shell=bash disable=SC2154  # what is not set here, ./book sets

# ---- What this machine has -----------------------------------------------------------------------
# The parts that the book stands on: name, headers (any of them will do) and library to look for, and
# the package for apt, dnf and conda-forge.
declare -A name headers library apt dnf conda
# shellcheck disable=SC2034  # the last three are read by their names, in column
part() { name[$1]=$2 headers[$1]=$3 library[$1]=$4 apt[$1]=$5 dnf[$1]=$6 conda[$1]=$7; }
part compiler "a C++20 compiler (g++ 12 or clang++ 16 at least)" "" "" g++ gcc-c++ gxx
part cmake "CMake 3.24 or newer" "" "" cmake cmake cmake
part generator "Ninja or make" "" "" "ninja-build make" "ninja-build make" "ninja make"
part boost Boost.Context boost/context/fiber.hpp boost_context libboost-context-dev boost-devel libboost-devel
part blas OpenBLAS "cblas.h openblas/cblas.h" openblas libopenblas-dev openblas-devel openblas
part cli11 CLI11 CLI/CLI.hpp "" libcli11-dev cli11-devel cli11
part json "JSON for Modern C++" nlohmann/json.hpp "" nlohmann-json3-dev json-devel nlohmann_json
part zlib zlib zlib.h z zlib1g-dev zlib-devel zlib
part catch2 Catch2 "catch2/catch.hpp catch2/catch_all.hpp" "" catch2 catch-devel catch2
part bubblewrap bubblewrap "" "" bubblewrap bubblewrap bubblewrap
part git git "" "" git git git
part mpi MPI "" "" "libopenmpi-dev openmpi-bin" openmpi-devel openmpi
part matplotlib matplotlib "" "" python3-matplotlib python3-matplotlib matplotlib
part fashion_mnist Fashion-MNIST "" "" dataset-fashion-mnist "" ""

required_for() {  # the parts without which VERB cannot do its work
    printf '%s\n' compiler cmake generator cli11 json zlib
    [[ $mode == gpu ]] || printf '%s\n' boost blas
    [[ $1 != test ]] || echo catch2
    [[ $1 != grade ]] || echo bubblewrap
}
optional_for() {  # those that VERB would miss
    case $1 in
        run) printf '%s\n' matplotlib fashion_mnist ;;
        bench) printf '%s\n' matplotlib mpi ;;
        test) printf '%s\n' git mpi matplotlib fashion_mnist bubblewrap ;;
    esac
}

# `module load` and conda tell the compiler (CPATH), or CMake (CMAKE_PREFIX_PATH), or neither; here
# both get to know all of it.
search_paths=()
join_prefixes() {
    local prefix all=${CMAKE_PREFIX_PATH:-}:${CPATH:-}:${CPLUS_INCLUDE_PATH:-}:${CONDA_PREFIX:-}
    IFS=':;' read -ra all <<<"$all"
    export CMAKE_PREFIX_PATH=
    for prefix in "${all[@]%/include}"; do
        [[ -n $prefix ]] || continue
        search_paths+=("-I$prefix/include" "-L$prefix/lib" "-L$prefix/lib64")
        CMAKE_PREFIX_PATH+=$prefix:
    done
}

# Asks the compiler itself what it can include and link, which is what counts. Two calls answer for
# all parts, and compiler_has becomes the list of those that are there.
ask_compiler() {
    local key header any unlinkable links=() question
    # clang 14 and 15 say that they know C++20, and lack parts of it.
    question=$'#if __cplusplus >= 202002L && (!defined __clang__ || __clang_major__ >= 16)\ncompiler\n#endif\n'
    read -ra compiler <<<"${CXX:-$(command -v g++ || command -v c++ || echo clang++)}"
    for key in "${!name[@]}"; do
        any=0
        for header in ${headers[$key]}; do any+=" || __has_include(<$header>)"; done
        question+="#if $any"$'\n'"$key"$'\n#endif\n'
        [[ -z ${library[$key]} ]] || links+=("-l${library[$key]}")
    done
    ask() { "${compiler[@]}" "${search_paths[@]}" -x c++ - "$@"; }
    compiler_has=" $(ask -std=c++20 -E -P <<<"$question" 2>/dev/null | xargs) " || true
    unlinkable=$(ask "${links[@]}" -o /dev/null <<<'int main() {}' 2>&1) || true
    for key in boost blas zlib; do
        [[ ! "$unlinkable " =~ -l${library[$key]}[^a-z_] ]] || compiler_has=${compiler_has/ $key / }
    done
}

has() {  # is this part here? (ask_compiler has been called)
    case $1 in
        cmake) printf '%s\n' 3.24 "$(cmake_version)" | sort -CV ;;
        generator) command -v ninja || command -v make ;;
        git) command -v git ;;
        bubblewrap) command -v bwrap ;;
        mpi) command -v mpicxx ;;
        matplotlib) python_that_plots ;;
        fashion_mnist) ls /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte* ;;
        *) [[ $compiler_has == *" $1 "* ]] ;;
    esac &>/dev/null </dev/null
}
missing() { while read -r part; do has "$part" || echo "$part"; done; }  # of the parts on stdin
cmake_version() { cmake --version 2>/dev/null | sed -n 's/^cmake version //p'; }
python_that_plots() {  # Debian's matplotlib serves /usr/bin/python3 only, which may not come first
    # Not the reader's folder, which Python would search first: what lies there would be run.
    local python others question='import sys; sys.path[:] = filter(None, sys.path); import importlib.util as u; exit(not u.find_spec("matplotlib"))'
    others=$(compgen -c python3. | grep -x 'python3\.[0-9]*' | sort -u || true)
    for python in python3 /usr/bin/python3 $others; do
        if "$python" -c "$question" 2>/dev/null; then
            echo "$python"
            return
        fi
    done
    return 1
}
nvcc_version() { "$1" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p'; }
lacks_cpp20() { [[ $(nvcc_version "$1") =~ ^[0-9]+ ]] && ((BASH_REMATCH[0] < 12)); }
find_nvcc() {  # the first one that knows C++20; where none does (some distributions have 11.5), the first one
    local nvcc first=''
    for nvcc in nvcc "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc"; do
        nvcc=$(command -v "$nvcc") || continue
        if ! lacks_cpp20 "$nvcc"; then
            echo "$nvcc"
            return
        fi
        first=${first:-$nvcc}
    done
    echo "$first"
}
names_of_gpus() { nvidia-smi -L 2>/dev/null | sed -n 's/^GPU [0-9]*: \(.*\) (.*/\1/p' | joined; }
oldest_gpu() {  # its compute capability; nothing where nvidia-smi does not know
    nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | grep -xE '[0-9]+\.[0-9]+' | sort -V | head -n 1 || true
}

choose_mode() {  # a GPU run needs two things: a GPU that answers, and its compiler
    local gpus nvcc oldest
    gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ' || true)
    nvcc=$(find_nvcc)
    oldest=$(oldest_gpu)
    mode=cpu
    if ((gpus == 0)); then
        why_mode="no GPU answers nvidia-smi"
    elif [[ -z $nvcc ]]; then
        why_mode="a GPU answers, but nvcc (CUDA Toolkit 12 or newer) is missing"
    elif lacks_cpp20 "$nvcc"; then
        why_mode="a GPU answers, but nvcc (CUDA Toolkit 12 or newer) is missing: $nvcc is $(nvcc_version "$nvcc")"
    elif [[ -n $oldest && $(printf '7.5\n%s\n' "$oldest" | sort -V | head -n 1) != 7.5 ]]; then
        why_mode="this GPU's compute capability is $oldest, and the book needs 7.5 (Turing) or newer"
    else
        mode=gpu why_mode="nvidia-smi lists $gpus GPU(s) and nvcc is here"
    fi
    if [[ $wanted == gpu && $mode == cpu ]]; then
        fail "--gpu needs a GPU and nvcc, but $why_mode; without --gpu this runs on the CPU."
    fi
    [[ $wanted != cpu ]] || mode=cpu why_mode="--cpu asks for it"
    [[ $mode == cpu || $nvcc == "$(command -v nvcc)" ]] || PATH=${nvcc%/*}:$PATH  # where CMake looks for it
    case $mode in cpu) folder=$root/build/cpu$races ;; gpu) folder=$root/build/cuda ;; esac
    log=$folder/book.log
}

# ---- Installing what is missing ------------------------------------------------------------------
column() {  # column TABLE part...: what the table says of these parts, one a line
    local -n table=$1
    local key
    for key in "${@:2}"; do printf '%s\n' "${table[$key]}"; done | sed '/^$/d'
}
packages() { column "$@" | xargs; }
how_to_install() {
    say "    apt install $(packages apt "$@")"
    say "    dnf install $(packages dnf "$@")"
    say "    conda install -c conda-forge $(packages conda "$@")"
}

apt_get=()  # how to call it here; empty where we may not
find_apt() {
    if ! command -v apt-get >/dev/null; then
        return
    elif [[ $(id -u) == 0 ]]; then
        apt_get=(env DEBIAN_FRONTEND=noninteractive apt-get)
    elif command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
        apt_get=(sudo DEBIAN_FRONTEND=noninteractive apt-get)
    fi
}
reader_agrees() {  # asks on a terminal, goes ahead without one
    local answer
    [[ -t 0 && -t 2 ]] || return 0
    read -rp "Install $* by apt? [Y/n] " answer
    [[ ${answer:-y} == [Yy]* ]]
}
apt_install() {  # fetches the package lists only if it does not work without
    local install=("${apt_get[@]}" install -y --no-install-recommends -o DPkg::Lock::Timeout=600 "$@")
    if "${install[@]}" --simulate &>>"$log" && step "installing $*" "${install[@]}"; then
        return
    fi
    step "updating apt's package lists" "${apt_get[@]}" update && step "installing $*" "${install[@]}"
}

# On return every part that VERB requires is here.
# shellcheck disable=SC2046  # a package's name is one word
ensure_parts() {
    local required optional package
    ask_compiler
    mapfile -t required < <(required_for "$1" | missing)
    mapfile -t optional < <(optional_for "$1" | missing)
    if [[ -n ${required[*]}${optional[*]} ]]; then find_apt; fi
    if [[ -n ${apt_get[*]} ]] && reader_agrees $(packages apt "${required[@]}" "${optional[@]}"); then
        [[ -z ${required[*]} ]] || apt_install $(packages apt "${required[@]}") || true
        for package in "${optional[@]}"; do apt_install $(packages apt "$package") || true; done
        ask_compiler
        mapfile -t required < <(required_for "$1" | missing)
        mapfile -t optional < <(optional_for "$1" | missing)
    fi
    if [[ -n ${required[*]} ]]; then
        say "This machine lacks $(column name "${required[@]}" | joined):" \
            "install it by one of these lines, or \`module load\` it, and call ./book again."
        how_to_install "${required[@]}"
        exit 1
    elif [[ -n ${optional[*]} ]]; then
        say "Going on without $(column name "${optional[@]}" | joined), which is optional; to have it, too:"
        how_to_install "${optional[@]}"
    fi
}

doctor() {
    local nvcc python lacking keys=no
    (($# == 0)) || bad_input "doctor takes no argument."
    choose_mode
    join_prefixes
    ask_compiler
    nvcc=$(find_nvcc)
    python=$(python_that_plots || true)
    if grep -qw ospke /proc/cpuinfo; then keys=yes; fi
    row() { printf '%-22s%s\n' "$1" "${2:-not found}"; }
    found() { if has "$1"; then "${@:2}"; fi; }
    row compiler "$(found compiler "${compiler[@]}" --version | head -n 1)"
    row CMake "$(cmake_version)"
    row "builds with" "$(command -v ninja || command -v make)"
    row nvcc "${nvcc:+$nvcc, $(nvcc_version "$nvcc")}"
    row GPUs "$(names_of_gpus)"
    row NCCL "$(find "${nvcc%/bin/nvcc}"/include /usr/{,local/}include -maxdepth 1 -name nccl.h 2>/dev/null |
        head -n 1)"
    row MPI "$(found mpi mpirun --version | head -n 1)"
    row BLAS "$(found blas echo OpenBLAS)"
    for part in boost catch2 cli11 json zlib fashion_mnist; do
        row "${name[$part]}" "$(found "$part" echo found)"
    done
    row matplotlib "${python:+found by $python}"
    row CPU "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $cores cores"
    row "" "memory protection keys (ospke): $keys"
    row mode "$mode, because $why_mode"
    mapfile -t lacking < <({ required_for test; optional_for test; } | missing)
    if [[ -n ${lacking[*]} ]]; then
        say "To have $(column name "${lacking[@]}" | joined):"
        how_to_install "${lacking[@]}"
    fi
}
