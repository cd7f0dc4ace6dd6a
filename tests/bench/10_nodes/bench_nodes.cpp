// Measures the all-reduces between nodes beside MPI, beside the link, and beside Gloo if it is
// asked for: of the ranks that mpirun or srun has started, such as those of ./book cluster up.
#include "05_ranks/world.hpp"
#include "tests/bench/09_all_reduce/comparison.hpp"
#include "tests/bench/10_nodes/gloo_candidate.hpp"
#include "tests/bench/10_nodes/link_limit.hpp"

namespace {

using namespace ddp;

struct Settings {
    std::vector<int> sizes{4, 16, 64, 256, 1024, 4096, 16384};  // KiB
    int rounds = 2;
    std::string gloo;  // a Python that has PyTorch; "": Gloo is not measured
    AllReduceOrder order;
};

void run(World& world, const CommonOptions& common, const Settings& options) {
    std::vector<std::size_t> sizes;
    for (const int kibibytes : options.sizes)
        sizes.push_back(static_cast<std::size_t>(kibibytes) << 10);
    CsvWriter file(world.has_rank_0() ? common.csv : "", comparison_columns());
    world.run([&](Rank& rank) {
        rank.select_device();
        const std::size_t most = std::ranges::max(sizes) / sizeof(float);
        auto candidates = make_candidates_over_nodes(rank, most, options.order);
        if (!options.gloo.empty())
            candidates.push_back(make_gloo_candidate(rank, options.gloo));
        const auto measurements = compare(rank, sizes, options.rounds, candidates);
        if (rank.rank() == 0)
            report_comparison(rank.world_size(), link_limit_text(), {{"mpi", {}, measurements}},
                              "native", file);
    });
}

}  // namespace

int main(int argc, char** argv) {
    Settings options;
    Options parser("bench_nodes", "How fast the all-reduces between nodes are, beside the link.");
    parser.add_ints("--sizes", options.sizes, {1, 1 << 20}, "KiB of the arrays");
    parser.add_int("--rounds", options.rounds, {1, 1000}, "rounds: a batch of each in turn");
    parser.with_quick("--sizes", [&] { options.sizes = {4, 64, 1024}; });
    parser.with_quick("--rounds", [&] { options.rounds = 1; });
    parser.add_text("--gloo", options.gloo, "a Python that has PyTorch: measure its Gloo, too");
    options.order.add_to(parser);
    parser.refuse({"--shape"}, "simulated nodes have no link");
    parser.refuse(
        {"--ranks", "--processes", "--link", "--seed", "--data", "--trace"},
        "this bench takes ranks on nodes, and nothing in it is random, read or simulated");
    parser.example("--sizes 64,1024 --levels 1", "round one ring, at two sizes");
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions& common) {
        if (!world.job().has_several_nodes())
            throw OptionError(
                "This bench takes ranks on several nodes: ./book cluster up 2x2 --link 100Mbit -- "
                "./book bench nodes.");
        run(world, common, options);
        return 0;
    });
}
