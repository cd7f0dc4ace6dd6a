// Measures the all-reduces beside MPI (as shipped and tuned, and others by --mpi) or NCCL and
// beside what the memory allows. On a CPU ranks are processes, of jobs that this program starts; on
// a GPU, which processes cannot share, they are threads. If mpirun or srun has started this program
// on one node, its own ranks are measured.
#include <filesystem>
#include <iostream>
#include <sstream>

#include "05_ranks/rendezvous.hpp"
#include "05_ranks/support/mpi_start.hpp"
#include "05_ranks/world.hpp"
#include "09_all_reduce/all_reduce.hpp"
#include "09_all_reduce/support/further_all_reduces.hpp"
#include "common/gpu/launch.hpp"
#include "common/report/progress.hpp"
#include "tests/bench/09_all_reduce/comparison.hpp"
#include "tests/bench/09_all_reduce/other_mpi.hpp"

namespace {

using namespace ddp;

struct Settings {
    std::vector<int> ranks{2, 4};
    std::vector<int> sizes{4, 16, 64, 256, 1024, 4096, 16384, 65536};  // KiB
    int jobs = 3;
    int rounds = 2;
    std::string algorithm = "all";
    std::string other_mpis;  // PREFIX,PREFIX
    std::string measurements;

    std::vector<std::size_t> bytes() const {
        std::vector<std::size_t> all;
        for (const int kibibytes : sizes)
            all.push_back(static_cast<std::size_t>(kibibytes) << 10);
        return all;
    }
    // The one that is compared with the references.
    std::string subject() const { return algorithm == "all" ? "native" : algorithm; }
};

// Once in every job.
std::vector<AllReduceMeasurement> measure(World& world, const Settings& options) {
    std::vector<AllReduceMeasurement> measurements;
    world.run([&](Rank& rank) {
        rank.select_device();
        std::vector<AllReduceMeasurement> mine_of_all =
            compare_all_reduces(rank, options.bytes(), options.rounds, options.algorithm);
        if (rank.rank() == 0)
            measurements = std::move(mine_of_all);
    });
    return measurements;
}

// This process is one of a job's, which was started by the function below or by the reader.
void take_part(const Settings& options, const CommonOptions& common) {
    World world(common);
    if (world.job().has_several_nodes())
        throw OptionError(
            "These ranks are on several nodes, and this bench compares kernels that reach one "
            "only: "
            "take ./book bench nodes.");
    const std::vector<AllReduceMeasurement> measurements = measure(world, options);
    if (!world.has_rank_0())
        return;
    if (!options.measurements.empty())
        return write_measurements(options.measurements, measurements);
    CsvWriter file(common.csv, comparison_columns());
    report_comparison(world.world_size(), limit_text(), {{"mpi", {}, measurements}},
                      options.subject(), file);
}

// This program's own words, for the processes of a job.
std::vector<std::string> words_of_job(const Settings& options, const CommonOptions& common,
                                      const std::filesystem::path& measurements) {
    std::string sizes;
    for (const int size : options.sizes)
        sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
    return {std::filesystem::read_symlink("/proc/self/exe"),
            "--sizes",
            sizes,
            "--rounds",
            std::to_string(options.rounds),
            "--algorithm",
            options.algorithm,
            "--timeout",
            std::to_string(common.timeout_s),
            "--measurements",
            measurements};
}

// By mpirun, or without one by our own launcher.
std::vector<AllReduceMeasurement> run_processes(int ranks, const MpiVariant& kind,
                                                const Settings& options,
                                                const CommonOptions& common) {
    const NamelessFile file;
    std::vector<std::string> words = words_of_job(options, common, file.path());
    int status = 0;
    if (kind.command.empty()) {
        std::vector<char*> pointers;
        for (std::string& word : words)
            pointers.push_back(word.data());
        pointers.push_back(nullptr);
        CommonOptions launch;
        launch.processes = ranks;
        status = launch_processes(launch, pointers.data()).value();
    } else {
        words.insert(words.begin(), kind.command.begin(), kind.command.end());
        status = run_job(words);
    }
    if (status != 0)
        throw std::runtime_error("a job of " + std::to_string(ranks) +
                                 " ranks has ended with status " + std::to_string(status) +
                                 ": what it has said stands above");
    return read_measurements(file.path());
}

// Runs a job of another MPI, and the subject right after it, as a job of our own launcher.
std::vector<AllReduceMeasurement> run_other(int ranks, const OtherMpi& mpi, Settings options,
                                            const CommonOptions& common) {
    std::vector<AllReduceMeasurement> all = mpi.measure(ranks, options.bytes(), options.rounds);
    options.algorithm = options.subject();
    const std::vector<AllReduceMeasurement> ours =
        run_processes(ranks, {mpi.name(), {}, {}}, options, common);
    all.insert(all.end(), ours.begin(), ours.end());
    return all;
}

std::vector<AllReduceMeasurement> run_threads(int ranks, const Settings& options,
                                              CommonOptions common) {
    common.ranks = ranks;
    World world(common);
    return measure(world, options);
}

// Returns those in the folders `prefixes`, "A,B".
std::vector<OtherMpi> other_mpis(const std::string& prefixes) {
    allow_mpirun();
    std::vector<OtherMpi> all;
    std::istringstream list(prefixes);
    for (std::string prefix; std::getline(list, prefix, ',');)
        all.emplace_back(std::filesystem::absolute(prefix), static_cast<int>(all.size()));
    return all;
}

void add_options(Options& parser, Settings& settings) {
    parser.add_ints("--ranks", settings.ranks, {1, max_ranks}, "how many sum together, in turn");
    parser.add_ints("--sizes", settings.sizes, {1, 1 << 20}, "KiB of the arrays");
    parser.add_int("--jobs", settings.jobs, {1, 1000}, "jobs of each kind, which take turns");
    parser.add_int("--rounds", settings.rounds, {1, 1000},
                   "rounds of a job: a batch of each in turn");
    parser.with_quick("--sizes", [&] { settings.sizes = {4, 64, 1024}; });
    parser.with_quick("--jobs", [&] { settings.jobs = 1; });
    parser.with_quick("--rounds", [&] { settings.rounds = 1; });
    std::vector<std::string> algorithms{"all", "native"};
    for (const ListedAllReduce& listed : all_reduces)
        algorithms.push_back(listed.name);
    for (const FurtherAllReduce& further : further_all_reduces())
        algorithms.push_back(further.name);
    parser.add_choice("--algorithm", settings.algorithm, algorithms,
                      "what to compare with MPI; native is the Communicator's choice");
    parser.add_text("--mpi", settings.other_mpis,
                    "folders of other MPIs, A,B: each is measured, too, and the subject beside it");
    parser.add_text("--measurements", settings.measurements,
                    "as one of a job: write all measurements to this file");
    parser.refuse({"--processes", "--link", "--seed", "--data", "--trace"},
                  "this bench starts its processes itself, as many as --ranks says, and nothing "
                  "in it is random, read or simulated");
    parser.example("--ranks 2,4 --csv all_reduce.csv", "two ranks, then four");
    parser.example("--ranks 2 --algorithm ring --sizes 64,1024", "only the ring, at two sizes");
}

// Measures all kinds of MPI in turn on `ranks` ranks, and native beside each of them.
void compare(int ranks, const std::vector<OtherMpi>& others, const Settings& options,
             const CommonOptions& common, CsvWriter& file) {
    std::vector<MpiVariant> kinds =
        kernels_run_on_cpu ? mpi_variants(ranks) : std::vector<MpiVariant>();
    if (kinds.empty())
        kinds.push_back({"mpi", {}, {}});
    const std::size_t own = kinds.size();
    std::vector<const OtherMpi*> measured;
    for (const OtherMpi& other : others)
        if (const std::string why_not = other.why_not(ranks); !why_not.empty()) {
            std::cerr << other.name() + " is not measured on " + std::to_string(ranks) +
                             " ranks: " + why_not + ".\n";
        } else {
            measured.push_back(&other);
            kinds.push_back({other.name(), {}, {}});
        }
    {
        Progress progress(std::to_string(ranks) + " ranks",
                          static_cast<std::int64_t>(kinds.size()) * options.jobs);
        for (int job = 0; job < options.jobs; job++)
            for (std::size_t i = 0; i < kinds.size(); i++) {
                add_measurements(kinds[i].measurements,
                                 i >= own ? run_other(ranks, *measured[i - own], options, common)
                                 : kernels_run_on_cpu
                                     ? run_processes(ranks, kinds[i], options, common)
                                     : run_threads(ranks, options, common));
                progress.advance();
            }
    }
    report_comparison(ranks, limit_text(), kinds, options.subject(), file);
}

int run(int argc, char** argv) {
    Settings options;
    Options parser("bench_all_reduce", "How fast the all-reduces are, beside MPI or NCCL.");
    add_options(parser, options);
    const CommonOptions common = parser.parse(argc, argv);
    if (find_starter(common) != StartedBy::none) {
        take_part(options, common);
        return 0;
    }
    const std::vector<OtherMpi> others = other_mpis(options.other_mpis);
    CsvWriter file(common.csv, comparison_columns());
    for (const int ranks : options.ranks)
        compare(ranks, others, options, common, file);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run(argc, argv); });
}
