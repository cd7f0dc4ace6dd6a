// How fast several ranks train: this book's DistributedDataParallel, compared with the same number
// of copies that each train alone at the same time, and with PyTorch's. They take turns, a round
// each, so that a machine that slows down slows all of them.
#include <csignal>
#include <deque>
#include <filesystem>
#include <iostream>
#include <limits>
#include <optional>

#include "03_network/models.hpp"
#include "05_ranks/world.hpp"
#include "14_overlap/bench/pytorch.hpp"
#include "14_overlap/show/timed_training.hpp"
#include "common/report/bench.hpp"
#include "common/report/csv.hpp"
#include "common/report/options.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

struct TrainOptions {
    std::vector<int> ranks{1, 2};
    std::string model = "mlp";
    int batch = 64;
    int rounds = 11;
    std::string pytorch = "auto";  // or "off", or an interpreter
    bool serve = false;
    bool alone = false;
};

// ---- One candidate: this program with --serve

// Returns the number of steps that rank 0 has read from stdin, on every rank; 0 at the end of
// stdin.
int steps_of_next_round(Rank& rank) {
    std::string line;
    if (rank.rank() == 0)
        std::getline(std::cin, line);
    line = rank.broadcast(line, 0);
    if (line.empty())
        return 0;
    const int steps = line.starts_with("run ") ? std::atoi(line.c_str() + 4) : 0;
    if (steps < 1)
        throw std::runtime_error("--serve reads lines such as 'run 20', not '" + line + "'");
    return steps;
}

void serve_rounds(Rank& rank, const TrainOptions& mine, std::uint64_t seed) {
    constexpr int warm_up_steps = 20;
    rank.select_device();
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    Random random(seed + static_cast<std::uint64_t>(rank.rank()));
    const auto model = make_model(mine.model, device, random);
    const auto communicator = make_communicator("native", rank, ddp_arena_bytes(*model));
    TimedOptions options{{1, 28, 28}, 10, mine.batch, mine.alone, {}};
    TimedTraining training(*communicator, device, *model, random, options);
    training.run(warm_up_steps);
    if (rank.rank() == 0)
        std::cout << "# this book, " << format_count(rank.world_size(), "rank") << std::endl;
    while (const int steps = steps_of_next_round(rank)) {
        const StepParts parts = training.run(steps);
        if (rank.rank() == 0)
            std::cout << parts.whole << ' ' << parts.compute << ' ' << parts.communication << ' '
                      << parts.exposed << std::endl;
    }
}

// ---- All candidates

struct Entry {
    std::string name;  // "mlp", "mlp_copies", "mlp_pytorch"
    int ranks;
    BenchmarkSubprocess program;
    // Seconds of a step, by round: the whole, computing, communicating, waiting. PyTorch reports
    // only the first; the others are NaN there.
    std::vector<double> parts[4] = {};

    double run(int steps) {
        std::vector<double> answer = program.run(steps);
        answer.resize(4, std::numeric_limits<double>::quiet_NaN());
        for (std::size_t i = 0; i < 4; i++)
            parts[i].push_back(answer[i] / steps);
        return parts[0].back();
    }
};

// Starts this program as a subprocess. One rank communicates with no other, so it is started as a
// copy.
BenchmarkSubprocess start_ours(const std::string& model, int ranks, bool alone,
                               const TrainOptions& mine, std::uint64_t seed) {
    std::vector<std::string> command{std::filesystem::read_symlink("/proc/self/exe"), "--serve",
                                     // a GPU gives its time to one process after the other
                                     kernels_run_on_cpu ? "--processes" : "--ranks",
                                     std::to_string(ranks), "--model", model, "--batch",
                                     std::to_string(mine.batch), "--seed", std::to_string(seed),
                                     "--timeout", "3600"};  // others are measured meanwhile
    if (alone || ranks == 1)
        command.push_back("--alone");
    std::optional<BenchmarkSubprocess> ours =
        BenchmarkSubprocess::start(command, own_environment(), false);
    if (!ours)
        throw std::runtime_error("this program has started itself with " + std::to_string(ranks) +
                                 " ranks, and the new process ended at once");
    return std::move(*ours);
}

// Returns nothing if PyTorch is not to be measured, or if none is found. Throws if the interpreter
// that was named has none.
std::optional<BenchmarkSubprocess> start_pytorch_if_wanted(const std::string& model,
                                                           const TrainOptions& mine, int ranks) {
    // On a GPU PyTorch is measured as one rank: its own ranks would want a GPU each.
    if (mine.pytorch == "off" || (!kernels_run_on_cpu && ranks > 1))
        return std::nullopt;
    const std::string python = mine.pytorch == "auto" ? "" : mine.pytorch;
    std::optional<BenchmarkSubprocess> pytorch = start_pytorch(python, model, mine.batch, ranks);
    if (!pytorch && !python.empty())
        throw OptionError("--pytorch " + python + " is no Python that has PyTorch: `" + python +
                          " -c 'import torch'` must work.");
    return pytorch;
}

std::deque<Entry> start_all(const std::string& model, const TrainOptions& mine,
                            std::uint64_t seed) {
    std::deque<Entry> entries;
    for (const int ranks : mine.ranks)
        entries.push_back({model, ranks, start_ours(model, ranks, false, mine, seed)});
    for (const int ranks : mine.ranks)
        if (ranks > 1)
            entries.push_back(
                {model + "_copies", ranks, start_ours(model, ranks, true, mine, seed)});
    for (const int ranks : mine.ranks)
        if (auto pytorch = start_pytorch_if_wanted(model, mine, ranks))
            entries.push_back({model + "_pytorch", ranks, std::move(*pytorch)});
    return entries;
}

// ---- The report

class TrainReport {
  public:
    explicit TrainReport(const std::filesystem::path& csv)
        : csv_(csv, {"model", "ranks", "batch_per_rank", "samples_per_s", "step_ms", "compute_ms",
                     "comm_ms", "exposed_ms"}) {}

    void add(const std::deque<Entry>& entries, int batch) {
        for (const Entry& entry : entries)
            add(entry, batch);
        for (const Entry& entry : entries)
            if (!entry.name.ends_with("_copies") && !entry.name.ends_with("_pytorch"))
                compare(entry, entries, batch);
    }

    void print() {
        if (!has_pytorch_)
            times_.note("PyTorch was not measured. --pytorch PYTHON names a Python that has it.");
        times_.note("Medians of a step. Communicating includes waiting for other ranks' buckets.");
        ratios_.note("Medians of the rounds' ratios: all of them take turns in every round.");
        std::cout << times_ << "\n" << ratios_;
    }

  private:
    void add(const Entry& entry, int batch) {
        double part[4];
        for (std::size_t i = 0; i < 4; i++)
            part[i] = median(entry.parts[i]);
        const double samples_per_s = entry.ranks * batch / part[0];
        csv_.row({entry.name, entry.ranks, batch, samples_per_s, part[0] * 1e3, part[1] * 1e3,
                  part[2] * 1e3, part[3] * 1e3});
        has_pytorch_ |= entry.name.ends_with("_pytorch");
        times_.row({entry.name, std::to_string(entry.ranks), format_fixed(samples_per_s, 0),
                    format_seconds(part[0]), format_percent(spread(entry.parts[0])),
                    format_seconds(part[1]), format_seconds(part[2]), format_seconds(part[3])});
    }

    void compare(const Entry& ours, const std::deque<Entry>& entries, int batch) {
        const std::string ranks = format_count(ours.ranks, "rank");
        // The book's own limits, for two cores.
        const bool is_held = ours.name == "mlp" && batch == 64 && kernels_run_on_cpu;
        for (const Entry& other : entries) {
            if (other.ranks != ours.ranks || other.name == ours.name ||
                !other.name.starts_with(ours.name + "_"))
                continue;
            const bool are_copies = other.name.ends_with("_copies");
            const std::string least = are_copies ? "0.85" : ours.ranks == 1 ? "1.3" : "2";
            ratios_.row(
                {ours.name + ", " + ranks,
                 are_copies ? "as many copies without communication" : other.program.greeting(),
                 format_fixed(median_ratio(other.parts[0], ours.parts[0]), 2),
                 is_held && ours.ranks <= 2 ? least : "-"});
        }
    }

    CsvWriter csv_;
    bool has_pytorch_ = false;
    Table times_{"Training",
                 {"model", "ranks", "samples/s", "a step", "spread", "computing", "communicating",
                  "waiting"}};
    Table ratios_{"How many times as fast", {"this book", "as", "is", "at least"}};
};

void measure(const std::string& model, const TrainOptions& mine, const CommonOptions& common,
             TrainReport& report) {
    const int steps = (model == "mlp" ? 20 : 4) / (common.quick ? 4 : 1);
    std::deque<Entry> entries = start_all(model, mine, common.seed);
    std::vector<Measurement> variants;
    for (Entry& entry : entries)
        variants.push_back([&entry, steps] { return entry.run(steps); });
    interleave(variants, 0, common.quick ? 3 : mine.rounds);
    report.add(entries, mine.batch);
}

int run(int argc, char** argv) {
    TrainOptions mine;
    Options options("bench_train", "How fast several ranks train, beside PyTorch in the same run.");
    options.add_ints("--ranks", mine.ranks, {1, most_ranks},
                     "how many train together, one after the other");
    options.add_choice("--model", mine.model, {"mlp", "cnn", "both"}, "what to train");
    options.add_int("--batch", mine.batch, {1, 60'000}, "pictures a step and rank");
    options.add_int("--rounds", mine.rounds, {1, 10'000}, "how often to measure each in turn");
    options.add_text("--pytorch", mine.pytorch,
                     "the Python whose PyTorch to measure; auto: python3, if it has one; off");
    options.add_flag("--serve", mine.serve,
                     "be measured: make a round for each line `run STEPS` of stdin");
    options.add_flag("--alone", mine.alone, "with --serve: every rank trains its own copy");
    options.refuse({"--link", "--data", "--trace"},
                   "this bench trains on made-up pictures as fast as the machine can");
    options.example("--ranks 1,2,4 --csv train.csv", "one, two and four ranks");
    options.example("--pytorch ~/torch/bin/python", "beside the PyTorch of a virtual environment");
    CommonOptions common = options.parse(argc, argv);
    if (mine.serve) {
        if (const std::optional<int> status = launch_processes(common, argv))
            return *status;
        if (!common.processes)
            common.ranks = mine.ranks[0];
        World world(common);
        world.run([&](Rank& rank) { serve_rounds(rank, mine, common.seed); });
        return 0;
    }
    if (common.processes)
        throw OptionError(
            "--processes makes no sense here without --serve: the bench starts its processes "
            "itself; give it --ranks 1,2.");
    std::signal(SIGPIPE, SIG_IGN);  // a candidate that has died is reported as an error
    TrainReport report(common.csv);
    for (const std::string model : {"mlp", "cnn"})
        if (mine.model == model || mine.model == "both")
            measure(model, mine, common, report);
    report.print();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run(argc, argv); });
}
