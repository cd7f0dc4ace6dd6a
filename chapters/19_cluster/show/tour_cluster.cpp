// A tour of a cluster, before anything is trained there: where are the ranks, what do the links
// between them carry, and what do more ranks bring? `./book cluster` starts it on the hosts.
#include <iostream>

#include "05_ranks/world.hpp"
#include "09_all_reduce/hosts/placement.hpp"
#include "19_cluster/show/links.hpp"
#include "19_cluster/show/where.hpp"
#include "common/gpu/launch.hpp"

namespace {

using namespace ddp;

constexpr int usual_ranks = 4;

struct TourOptions {
    std::string show = "where";
};

int show_where(World& world, const CommonOptions& common, const RankPlace& mine) {
    CsvWriter file(world.has_rank_0() ? common.csv : "", where_columns());
    bool is_well = true;
    world.run([&](Rank& rank) {
        const std::vector<RankPlace> places = gather_places(rank, mine);
        const std::vector<HostNetwork> networks = watch_network(rank);
        if (rank.rank() == 0)
            is_well = report_where(rank.job(), places, networks, file);
    });
    return is_well ? 0 : 1;
}

// The links, and then the use that all-reduces of all ranks make of the one between hosts.
int show_links(World& world, const CommonOptions& common) {
    if (world.world_size() == 1)
        throw OptionError("A link is between two ranks, and there is one: try --processes 4.");
    const std::size_t most = std::size_t{common.quick ? 1u : 4u} << 20;
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
        std::cout << "The simulator takes these links: ./book run 19 --simulate-only --links "
                  << common.csv.string() << "\n";
    return 0;
}

// Starts this program again as `ranks` processes, where nobody has started any ranks; returns their
// exit status when they have ended. On a GPU, which processes cannot share, the ranks are threads
// of this one.
std::optional<int> start_ranks(int ranks, CommonOptions& common, int argc, char** argv) {
    if (find_starter(common) != StartedBy::nobody)
        return std::nullopt;
    require_writable(common);
    if (common.processes || common.ranks)
        return launch_processes(common, argv);
    (kernels_run_on_cpu ? common.processes : common.ranks) = ranks;
    std::string number = std::to_string(ranks), option = "--processes";
    std::vector<char*> words(argv, argv + argc);
    words.insert(words.end(), {option.data(), number.data(), nullptr});
    return launch_processes(common, words.data());
}

int run_tour(int argc, char** argv) {
    const RankPlace place = place_of_process();
    TourOptions mine;
    Options options("tour_cluster", "Where are the ranks, and what do their links carry?");
    options.add_choice("--show", mine.show, {"where", "links"}, "what to show");
    options.take_shape();
    options.refuse({"--shape"}, "the tour shows the hosts that are there");
    options.refuse({"--seed", "--data", "--trace"}, "nothing here is drawn, read or recorded");
    options.refuse({"--link"}, "the tour shows the links that are there");
    options.example("--show where", "four ranks of this machine");
    options.example("--show links --processes 2 --csv links.csv", "a link for the simulator");
    CommonOptions common = options.parse(argc, argv);
    if (const std::optional<int> status = start_ranks(usual_ranks, common, argc, argv))
        return *status;
    World world(common);
    return mine.show == "where" ? show_where(world, common, place) : show_links(world, common);
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run_tour(argc, argv); });
}
