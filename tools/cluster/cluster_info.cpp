// A tour of a cluster, before anything is trained there: where are the ranks, what do the links
// between them carry, and what do more ranks bring? `./book cluster` starts it on the nodes.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "05_ranks/world.hpp"
#include "10_nodes/placement.hpp"
#include "common/gpu/launch.hpp"
#include "common/report/units.hpp"
#include "tools/cluster/link_report.hpp"
#include "tools/cluster/scaling_report.hpp"
#include "tools/cluster/where.hpp"

namespace {

using namespace ddp;

constexpr int usual_ranks = 4;

struct TourOptions {
    std::string show = "where";
    std::vector<int> counts;  // of ranks; empty: the usual ones
    bool weak = false, strong = false;
    std::string compute;  // empty: the network
    AllReduceOrder order;
};

std::size_t longest_message(const CommonOptions& common) {
    return std::size_t{common.quick ? 1u : 4u} << 20;
}

int show_where(World& world, const CommonOptions& common, const RankPlace& mine,
               const AllReduceOrder& order) {
    CsvWriter file(world.has_rank_0() ? common.csv : "", where_columns());
    bool is_well = true;
    world.run([&](Rank& rank) {
        const std::vector<RankPlace> places = gather_places(rank, mine);
        const std::vector<NodeNetwork> networks = watch_network(rank, order);
        if (rank.rank() == 0)
            is_well = report_where(rank.job(), places, networks, file);
    });
    return is_well ? 0 : 1;
}

// The links, and then the use that all-reduces of all ranks make of the one between nodes.
int show_links(World& world, const CommonOptions& common) {
    if (world.world_size() == 1)
        throw OptionError("A link is between two ranks, and there is one: try --processes 4.");
    const std::size_t most = longest_message(common);
    const int repeats = common.quick ? 2 : 5;
    CsvWriter file(world.has_rank_0() ? common.csv : "", link_columns());
    world.run([&](Rank& rank) {
        rank.select_device();
        const ClusterLinks links = measure_links(rank, message_sizes(most), repeats);
        if (rank.rank() == 0)
            report_links(links, file);
        if (!links.between.is_there())
            return;
        const auto all_reduces =
            measure_orders(rank, {4 << 10, 64 << 10, 1 << 20, most}, std::nullopt, repeats);
        if (rank.rank() != 0)
            return;
        CsvWriter use(beside(common.csv, "all_reduce"), link_use_columns());
        report_link_use(placement_of(Group::all(rank.job()), rank.job(), 0, std::nullopt).text(),
                        all_reduces, links.between.cost(), use);
    });
    if (world.has_rank_0() && !common.csv.empty())
        std::cout << "The simulator takes these links: ./book run 21 --links "
                  << std::filesystem::proximate(common.csv).string() << "\n";
    return 0;
}

// Returns the counts of --ranks, or the usual ones. Throws OptionError if the job has too few
// ranks.
std::vector<int> counts_of(const TourOptions& options, int world_size) {
    for (const int ranks : options.counts)
        if (ranks > world_size)
            throw OptionError("--ranks " + std::to_string(ranks) + " are more than the " +
                              std::to_string(world_size) +
                              " of this job: start more, or leave them out.");
    return options.counts.empty() ? usual_counts(world_size) : options.counts;
}

// Returns the seconds of --compute; 0 if the network is to compute.
double sleep_of(const TourOptions& options) {
    if (options.compute.empty())
        return 0;
    const std::optional<double> seconds = parse_seconds(options.compute);
    if (!seconds || *seconds < 1e-3 || *seconds > 10)
        throw OptionError("--compute needs a time from 1ms to 10s, such as 40ms, not '" +
                          options.compute + "'.");
    return *seconds;
}

// Measures the links that the prediction takes, and prints them. The process of rank 0 gets them.
ClusterLinks links_of_scaling(World& world, const CommonOptions& common) {
    ClusterLinks links;
    if (world.world_size() == 1)
        return links;
    world.run([&](Rank& rank) {
        rank.select_device();
        const ClusterLinks measured =
            measure_links(rank, message_sizes(longest_message(common)), 3);
        if (rank.rank() != 0)
            return;
        links = measured;
        CsvWriter none("", link_columns());
        report_links(links, none);
    });
    return links;
}

int show_scaling(World& world, const CommonOptions& common, const TourOptions& options) {
    ScalingOptions scaling;
    scaling.sleep_s = sleep_of(options);
    scaling.counts = counts_of(options, world.world_size());
    scaling.rounds = common.quick ? 2 : 5;
    scaling.order = options.order;
    CsvWriter file(world.has_rank_0() ? common.csv : "", scaling_columns());
    const ClusterLinks links = links_of_scaling(world, common);
    for (const bool is_strong : {false, true}) {
        if (is_strong ? !options.strong : options.strong && !options.weak)
            continue;
        scaling.is_strong = is_strong;
        const std::vector<ScalingPoint> points = measure_scaling(world, scaling, links);
        if (world.has_rank_0())
            report_scaling(scaling, points, file);
    }
    return 0;
}

// Starts this program again as `ranks` processes, where nobody has started any ranks; returns their
// exit status when they have ended. On a GPU, which processes cannot share, the ranks are threads
// of this one.
std::optional<int> start_ranks(int ranks, CommonOptions& common, int argc, char** argv) {
    if (find_starter(common) != StartedBy::none)
        return std::nullopt;
    require_writable(common);
    if (common.processes)
        return launch_processes(common, argv);
    if (ranks > max_ranks)
        throw OptionError("--ranks " + std::to_string(ranks) + " are more than the " +
                          std::to_string(max_ranks) +
                          " that are started on one machine: start them by mpirun or srun.");
    (kernels_run_on_cpu ? common.processes : common.ranks) = ranks;
    std::string number = std::to_string(ranks), option = "--processes";
    std::vector<char*> words(argv, argv + argc);
    words.insert(words.end(), {option.data(), number.data(), nullptr});
    return launch_processes(common, words.data());
}

void add_tour_options(Options& parser, TourOptions& options) {
    parser.add_choice("--show", options.show, {"where", "links", "scaling"}, "what to show");
    parser.add_ints("--ranks", options.counts, {1, max_ranks_over_nodes},
                    "scaling: how many train together, in turn (1, 2, 4 and so on)");
    parser.add_flag("--weak", options.weak, "scaling: every rank has as much to do as one alone");
    parser.add_flag("--strong", options.strong,
                    "scaling: the ranks share what one alone has to do");
    parser.add_text("--compute", options.compute,
                    "scaling: ranks that sleep for this time, such as 40ms, and no network");
    options.order.add_to(parser);
    parser.refuse({"--shape"}, "the tour shows the nodes that are there");
    parser.refuse({"--seed", "--data", "--trace"}, "nothing here is drawn, read or recorded");
    parser.refuse({"--link"}, "the tour shows the links that are there");
    parser.example("--show where", "four ranks of this machine");
    parser.example("--show scaling --ranks 1,2,4 --compute 40ms", "ranks that sleep");
    parser.example("--show links --processes 2 --csv links.csv", "a link for the simulator");
}

int run_cluster_info(int argc, char** argv) {
    const RankPlace place = place_of_process();
    TourOptions options;
    Options parser("cluster_info", "Where are the ranks, and what do their links carry?");
    add_tour_options(parser, options);
    CommonOptions common = parser.parse(argc, argv);
    if (options.show != "scaling" &&
        (!options.counts.empty() || options.weak || options.strong || !options.compute.empty()))
        throw OptionError(
            "--ranks, --weak, --strong and --compute are for scaling: leave them out, or say "
            "--show scaling (./book cluster scale).");
    const int ranks =
        options.counts.empty() ? usual_ranks : *std::ranges::max_element(options.counts);
    if (const std::optional<int> status = start_ranks(ranks, common, argc, argv))
        return *status;
    World world(common);
    if (options.show == "where")
        return show_where(world, common, place, options.order);
    return options.show == "links" ? show_links(world, common)
                                   : show_scaling(world, common, options);
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run_cluster_info(argc, argv); });
}
