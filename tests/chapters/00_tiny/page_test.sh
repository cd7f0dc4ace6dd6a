#!/usr/bin/env bash
# tiny.cpp as its reader has it: one page, compiled by one line, learns without a data race; and checks.cpp finds its mutants.
#     page_test.sh COMPILER
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/../../meta/meta.sh"
compiler=$1
page=$root/chapters/00_tiny/tiny.cpp
checks=$root/tests/chapters/00_tiny/checks.cpp
cd "$scratch" || exit 1
cp "$page" tiny.cpp

(($(wc -l <tiny.cpp) <= 400)) || complain "the page has $(wc -l <tiny.cpp) lines; 400 are the most"
line=$(sed -n 's|^// *\(g++ .*\) && ./tiny.*|\1|p' tiny.cpp)
[[ $line == "g++ -std=c++20 -O2 -pthread tiny.cpp -o tiny" ]] || complain "this is not the line that compiles it: $line"
read -ra words <<<"${line/g++/"$compiler"}"
said=$("${words[@]}" -Wall -Wextra 2>&1) || complain "it does not compile"
[[ -z $said ]] || complain "the compiler says: $said"

sentence="error: tiny takes a number of ranks, 1 to 64, such as 4."
for wrong in 0 65 -1 x 4x +4 "" ٣ 99999999999999999999; do expect_sentence 2 "$sentence" ./tiny "$wrong"; done
expect_sentence 2 "$sentence" ./tiny 4 4

# learns PROGRAM RANKS LEAST: all hashes are the same, and the last test accuracy is that good.
learns() {
    expect 0 "epoch 5" "$1" "$2"
    (($(grep -c '^rank [0-9]*: hash [0-9a-f]\{16\}$' <<<"$output") == $2)) || complain "not $2 ranks say their hash: $output"
    (($(sed -n 's/^rank.*: hash //p' <<<"$output" | sort -u | wc -l) == 1)) || complain "replicas differ: $output"
    sed -n 's/^epoch 5 .*accuracy //p' <<<"$output" | awk -v least="$3" '{ good = $1 >= least } END { exit !good }' ||
        complain "the test accuracy should be $3: $output"
    (($(grep -cE '^  (compute|wire) ' <<<"$output") == 4)) || complain "no timelines: $output"
}
if ls /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz &>/dev/null; then
    learns ./tiny 4 0.87
else
    echo "SKIPPED: Fashion-MNIST is not here"
fi
mkdir damaged && for name in {train,t10k}-{images-idx3,labels-idx1}-ubyte; do head -c 1000 /dev/zero | gzip >"damaged/$name.gz"; done
for folder in /nowhere/ damaged/; do
    sed "s|\"/usr/share/datasets/fashion-mnist/\"|\"$folder\"|" "$page" >elsewhere.cpp
    "$compiler" -std=c++20 -O2 -pthread elsewhere.cpp -o elsewhere
    learns ./elsewhere 3 0.95
    [[ $output == "no Fashion-MNIST in $folder: drawing shapes"* ]] || complain "nobody says that these are shapes: $output"
done

# The timelines alone: overlap saves a tenth of the step and more. A busy machine may draw anything: then once more.
sed 's/epochs = 5,/epochs = 0,/' elsewhere.cpp >timelines.cpp
"$compiler" -std=c++20 -O2 -pthread timelines.cpp -o timelines
tries=20
until ./timelines 1 | awk '/^without overlap: / { length_without = $3 } /^with overlap: / { exit $3 > 0.9 * length_without }'; do
    ((--tries)) || { complain "overlap saves nothing: $(./timelines 1)" && break; }
done

# ThreadSanitizer's shadow is at fixed addresses, and very random ones would be in its way.
fixed_addresses=(setarch -R)
"${fixed_addresses[@]}" true 2>/dev/null || fixed_addresses=()
# check PAGE FLAGS...: what checks.cpp says of it, or ThreadSanitizer.
check() {
    "$compiler" -std=c++20 -O1 -pthread "${@:2}" -DTINY="\"$1\"" "$checks" -o checked || complain "$1 does not compile"
    said=$(timeout 120 "${fixed_addresses[@]}" ./checked 2>&1)
}
check "$page" -fsanitize=thread || complain "ThreadSanitizer or a check finds in the page: $said"

# mutant WORDS SED FLAGS...: the page with one mistake, of which these words are said, a regular expression.
mutant() {
    sed "$2" "$page" >mutant.cpp
    ! cmp -s mutant.cpp "$page" || complain "this changes nothing: $2"
    ! check "$PWD/mutant.cpp" "${@:3}" || complain "nobody finds: $2"
    [[ $said =~ $1 ]] || complain "of $2 is said: $said"
}
mutant "data race" 's/memory_order_acquire/memory_order_relaxed/' -fsanitize=thread
mutant "data race" 's/memory_order_release/memory_order_relaxed/' -fsanitize=thread
mutant "data race|is not" '/the message before this one is gone/d' -fsanitize=thread
mutant "have not learned what one learns" 's/gradient \/= communicator.world_size/gradient \/= 1/'
mutant "have not learned what one learns" '/communicator.broadcast(network.parameters)/d'
mutant "have not learned what one learns" 's/communicator.all_reduce(buckets\[b\]);//'
mutant "two epochs have the same order" 's/mt19937(epoch)/mt19937(1)/'
mutant "two ranks have the same sample" 's/for (int i = rank; i < samples/for (int i = 0; i < samples/'
mutant "is not the sum" 's/begin = data.size() \* i \/ world_size/begin = data.size() \/ world_size * i/'
mutant "is not the sum" 's/? add : replace/? add : add/'
mutant "travel before backward" 's/if (has_overlap && /if (/'
mutant "no bucket travels" 's/if (has_overlap && /if (false \&\& /'
finish
