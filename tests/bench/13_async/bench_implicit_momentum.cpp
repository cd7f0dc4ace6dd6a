// Measures the momentum of random orders of stale gradients, beside the formula.
#include "common/report/main.hpp"
#include "common/report/options.hpp"
#include "tests/bench/13_async/implicit_momentum.hpp"

namespace {

using namespace ddp;

int run(int argc, char** argv) {
    int runs = 20'000;
    Options parser("bench_implicit_momentum",
                   "Asynchrony acts like momentum: random orders on a parabola, and the formula.");
    parser.add_int("--runs", runs, {100, 10'000'000}, "random orders to take the mean of");
    parser.refuse({"--ranks", "--processes", "--link", "--timeout", "--data", "--trace"},
                  "this bench simulates the workers, and prints one table");
    const CommonOptions common = parser.parse(argc, argv);
    show_implicit_momentum(common.quick ? 2'000 : runs, common.seed);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_main([&] { return run(argc, argv); });
}
