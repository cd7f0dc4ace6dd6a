#!/usr/bin/env bash
# What ./book does on a machine that lacks things: where it may install (root, sudo) it does so by apt;
# where it may not, it names the packages for apt, dnf and conda. No real package manager is called.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
little_book "$scratch/book"
book=$scratch/book/book
real_cxx=$(command -v g++)
export PATH CXX=$scratch/cxx
unset CPATH CPLUS_INCLUDE_PATH CMAKE_PREFIX_PATH CONDA_PREFIX LIBRARY_PATH
PATH=$(machine_without apt-get sudo id nvidia-smi nvcc mpicxx)

# A compiler that finds the libraries' headers only once $scratch/headers exists.
cat >"$CXX" <<END
#!/bin/sh
[ -e "$scratch/headers" ] || exec "$real_cxx" -nostdinc "\$@"
exec "$real_cxx" "\$@"
END
stub() { printf '#!/bin/sh\n%s\n' "$2" >"$PATH/$1" && chmod +x "$PATH/$1"; }  # stub NAME 'script'
chmod +x "$CXX"

stub id "echo 1000"
expect 1 "This machine lacks " "$book" run 1
for name in CLI11 "JSON for Modern C++" zlib Boost.Context OpenBLAS; do
    [[ $output == *"$name"*": install it by one of these lines"* ]] || complain "$name is not named: $output"
done
lacks "C++20 compiler"
lacks Catch2
for line in "apt install libcli11-dev nlohmann-json3-dev zlib1g-dev libboost-context-dev libopenblas-dev" \
    "dnf install cli11-devel json-devel zlib-devel boost-devel openblas-devel" \
    "conda install -c conda-forge cli11 nlohmann_json zlib libboost-devel openblas"; do
    [[ $output == *"    $line"* ]] || complain "no line '$line' in: $output"
done
expect 1 "Catch2: install it by one of these lines" "$book" test

# A library counts where only CPATH or conda knows it, and a header without its library does not.
mkdir -p "$scratch/module/include/CLI"
touch "$scratch/module/include/CLI/CLI.hpp" "$scratch/module/include/zlib.h"
for way in CPATH="$scratch/module/include" CONDA_PREFIX="$scratch/module" CMAKE_PREFIX_PATH="/x:$scratch/module"; do
    expect 1 "apt install nlohmann-json3-dev" env "$way" "$book" run 1
done

# An older compiler and an older CMake count as missing ones.
mv "$PATH/cmake" "$PATH/real-cmake"
stub cmake 'echo cmake version 3.22.1'
touch "$scratch/headers"
expect 1 "lacks CMake 3.24 or newer: install" "$book" run 1
expect 1 "apt install g++ cmake" env "CXX=$real_cxx -D__cplusplus=201709L" "$book" run 1
mv "$PATH/real-cmake" "$PATH/cmake"
expect 1 "lacks a C++20 compiler (g++ 12 or clang++ 16 at least): install" \
    env "CXX=$real_cxx -D__clang__ -D__clang_major__=15" "$book" run 1
expect 1 "lacks a C++20 compiler" env CXX="$scratch/no-compiler" "$book" run 1

# Everything that is required is here, what is optional is not: it says so and goes on.
expect 0 "Going on without MPI" "$book" test --cpu
[[ $output == *"apt install libopenmpi-dev openmpi-bin"*"tests passed"* ]] || complain "does not go on: $output"
expect 0 "this is 01_line" "$book" run 1
lacks "Going on without MPI"
[[ -e /usr/share/datasets/fashion-mnist || $output == *"Going on without "*"Fashion-MNIST"* ]] ||
    complain "a missing data set is not named: $output"

# As root and without a terminal it installs: lists first only where it does not work without them.
rm -r "$scratch/book/build" "$scratch/headers"
stub id "echo 0"
stub apt-get "echo \"\$DEBIAN_FRONTEND \$*\" >>'$scratch/apt'
case \"\$*\" in
    *--simulate*) [ -e '$scratch/lists' ] ;;
    *update) touch '$scratch/lists' ;;
    *install*) touch '$scratch/headers' ;;
esac"
expect 0 "updating apt's package lists (" "$book" run 1
[[ $output == *"installing libcli11-dev nlohmann-json3-dev zlib1g-dev libboost-context-dev libopenblas-dev ("* ]] ||
    complain "what was installed? $output"
[[ $(grep -c "^noninteractive .*install -y.* libcli11-dev" "$scratch/apt") == 2 && $(grep -c update "$scratch/apt") -ge 1 ]] ||
    complain "apt-get was called like this: $(cat "$scratch/apt")"
rm "$scratch/headers"
expect 0 "installing libcli11-dev" "$book" run 1
lacks "updating"

# On a terminal it asks first.
if command -v script >/dev/null; then
    # shellcheck disable=SC2317  # expect calls it
    terminal() { script -qec "'$book' run 1" /dev/null <<<"$1"; }
    rm "$scratch/headers"
    expect 1 "by apt? [Y/n]" terminal no
    [[ $output == *"This machine lacks"* ]] || complain "a no is no end: $output"
    expect 0 "this is 01_line" terminal yes
else
    echo "SKIPPED: no script(1) here to play a terminal that ./book asks on"
fi

# By sudo where it asks for no password, not at all where it would.
rm "$scratch/headers"
stub id "echo 1000"
stub sudo 'exit 1'
expect 1 "This machine lacks" "$book" run 1
stub sudo "[ \"\$1\" = -n ] || env \"\$@\""
expect 0 "installing libcli11-dev" "$book" run 1

# An installation that fails is not the end where only optional parts are missing.
stub apt-get "exit 100"
expect 0 "Going on without MPI" "$book" test --cpu
rm "$scratch/headers"
expect 1 "This machine lacks CLI11" "$book" run 1
finish
