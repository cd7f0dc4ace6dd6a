// Measures how fast each version of the block reduction reads, with blocks of every size, beside
// the memory's limit.
#include "02_kernels/show/reduce_times.hpp"
#include "common/report/main.hpp"
#include "common/report/options.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

struct Settings {
    int elements = kernels_run_on_cpu ? 16 << 20 : 256 << 20;
    int rounds = 15;
};

std::vector<BlockReduce> all_versions(bool quick) {
    std::vector<BlockReduce> all;
    for (const ReduceVersion version : reduce_versions)
        for (unsigned int block = 32; block <= 1024; block *= quick ? 32 : 2)
            all.push_back({version, block});
    return all;
}

int run(int argc, char** argv) {
    Settings options;
    Options parser("bench_reduce", "How fast the versions of the block reduction read.");
    parser.add_int("--elements", options.elements, {1 << 16, 1 << 28}, "floats to add up");
    parser.with_quick("--elements", [&] { options.elements = options.elements / 8; });
    parser.add_int("--rounds", options.rounds, {3, 100'000}, "measurements of each, taken in turn");
    parser.with_quick("--rounds", [&] { options.rounds = 3; });
    parser.refuse({"--ranks", "--processes", "--link", "--timeout", "--data", "--trace", "--seed"},
                  "this bench adds up an array of one device");
    const CommonOptions common = parser.parse(argc, argv);
    const auto elements = static_cast<std::size_t>(options.elements);
    report("An array of " + format_bytes(4.0 * static_cast<double>(elements)) + " to one sum",
           time_reductions(all_versions(common.quick), elements, options.rounds), common.csv);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_main([&] { return run(argc, argv); });
}
