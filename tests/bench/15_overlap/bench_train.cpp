// Measures how fast several ranks train: this book's DistributedDataParallel, compared with the
// same number of copies that each train alone at the same time, with the matrix products of a step
// alone, and with PyTorch's. They take turns, a round each, so that a machine that slows down slows
// all of them.
#include <csignal>
#include <deque>
#include <filesystem>
#include <iostream>
#include <limits>
#include <optional>

#include "03_network/layers/linear_relu.hpp"
#include "03_network/models.hpp"
#include "05_ranks/world.hpp"
#include "10_nodes/make_communicator.hpp"
#include "15_overlap/support/timed_training.hpp"
#include "common/report/bench.hpp"
#include "common/report/csv.hpp"
#include "common/report/options.hpp"
#include "common/report/process.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"
#include "tests/bench/15_overlap/pytorch.hpp"
#include "tests/bench/15_overlap/step_products.hpp"

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
    bool products = false;
};

constexpr int warm_up_steps = 20;

// A training on the ranks of this job, or on each of them alone.
class JobTraining {
  public:
    JobTraining(Rank& rank, const TrainOptions& options, const std::string& model, bool alone,
                std::uint64_t seed)
        : device_(make_run_scoped<Device>(rank, rank_memory(rank))),
          random_(seed + static_cast<std::uint64_t>(rank.rank())),
          model_(make_model(model, device_, random_)),
          communicator_(make_communicator("native", rank, ddp_arena_bytes(*model_))),
          training_(*communicator_, device_, *model_, random_,
                    {{1, 28, 28}, 10, options.batch, alone, {}}) {
        fuse_linear_relu(*model_);
        training_.run(warm_up_steps);
    }

    // Returns the seconds of a round: the whole, computing, communicating, waiting.
    std::vector<double> run(int steps) {
        const StepParts parts = training_.run(steps);
        return {parts.whole, parts.compute, parts.communication, parts.exposed};
    }

  private:
    Device& device_;
    Random random_;
    std::unique_ptr<Sequential> model_;
    std::unique_ptr<Communicator> communicator_;
    TimedTraining training_;
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

// A round's seconds: the whole, and what is known of its parts.
using Round = std::function<std::vector<double>(int steps)>;

Round training_round(Rank& rank, const TrainOptions& options, const std::string& model, bool alone,
                     std::uint64_t seed) {
    const auto training = std::make_shared<JobTraining>(rank, options, model, alone, seed);
    return [training](int steps) { return training->run(steps); };
}

Round products_round(Rank& rank, const TrainOptions& options, const std::string& model,
                     std::uint64_t seed) {
    Random random(seed);
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    const auto products = std::make_shared<StepProducts>(
        rank, device, make_model(model, device, random)->parameters(), options.batch, random);
    products->run(warm_up_steps);
    return [products](int steps) { return std::vector{products->run(steps)}; };
}

void serve_rounds(Rank& rank, const TrainOptions& options, std::uint64_t seed) {
    rank.select_device();
    const Round round = options.products
                            ? products_round(rank, options, options.model, seed)
                            : training_round(rank, options, options.model, options.alone, seed);
    if (rank.rank() == 0)
        std::cout << "# this book, " << format_count(rank.world_size(), "rank") << std::endl;
    while (const int steps = steps_of_next_round(rank)) {
        const std::vector<double> parts = round(steps);
        for (std::size_t i = 0; i < parts.size() && rank.rank() == 0; i++)
            std::cout << (i > 0 ? " " : "") << parts[i];
        if (rank.rank() == 0)
            std::cout << std::endl;
    }
}

// ---- All candidates

struct Entry {
    std::string name;  // "mlp", "mlp_copies", "mlp_products", "mlp_pytorch"
    int ranks;
    std::string greeting;  // "PyTorch 2.15.0, ..."
    Round round;
    std::function<double()> memory;  // bytes of all ranks together
    // Seconds of a step, by round: the whole, computing, communicating, waiting. PyTorch and the
    // products report only the first; the others are NaN there.
    std::vector<double> parts[4] = {};

    double run(int steps) {
        std::vector<double> answer = round(steps);
        answer.resize(4, std::numeric_limits<double>::quiet_NaN());
        for (std::size_t i = 0; i < 4; i++)
            parts[i].push_back(answer[i] / steps);
        return parts[0].back();
    }
};

// Makes the entry of a subprocess.
Entry entry_of(const std::string& name, int ranks, BenchmarkSubprocess subprocess) {
    const auto program = std::make_shared<BenchmarkSubprocess>(std::move(subprocess));
    return {name, ranks, program->greeting(), [program](int steps) { return program->run(steps); },
            [program] { return program->memory_bytes(); }};
}

// Starts this program as a subprocess, with `what` added to its command line.
BenchmarkSubprocess start_ours(const std::string& model, int ranks, const std::string& what,
                               const TrainOptions& options, std::uint64_t seed) {
    std::vector<std::string> command{std::filesystem::read_symlink("/proc/self/exe"), "--serve",
                                     // a GPU gives its time to one process after the other
                                     kernels_run_on_cpu ? "--processes" : "--ranks",
                                     std::to_string(ranks), "--model", model, "--batch",
                                     std::to_string(options.batch), "--seed", std::to_string(seed),
                                     "--timeout", "3600"};  // others are measured meanwhile
    if (!what.empty())
        command.push_back(what);
    std::optional<BenchmarkSubprocess> ours =
        BenchmarkSubprocess::start(command, environment_with({}), false);
    if (!ours)
        throw std::runtime_error("this program has started itself with " + std::to_string(ranks) +
                                 " ranks, and the new process ended at once");
    return std::move(*ours);
}

// Returns nothing if PyTorch is not to be measured, or if none is found. Throws if the interpreter
// that was named has none.
std::optional<BenchmarkSubprocess> start_pytorch_if_wanted(const std::string& model,
                                                           const TrainOptions& options, int ranks) {
    // On a GPU PyTorch is measured as one rank: its own ranks would want a GPU each.
    if (options.pytorch == "off" || (!kernels_run_on_cpu && ranks > 1))
        return std::nullopt;
    const std::string python = options.pytorch == "auto" ? "" : options.pytorch;
    std::optional<BenchmarkSubprocess> pytorch = start_pytorch(python, model, options.batch, ranks);
    if (!pytorch && !python.empty())
        throw OptionError("--pytorch " + python + " is no Python that has PyTorch: `" + python +
                          " -c 'import torch'` must work.");
    return pytorch;
}

std::deque<Entry> start_all(const std::string& model, const TrainOptions& options,
                            std::uint64_t seed) {
    std::deque<Entry> entries;
    const auto add = [&](const std::string& name, int ranks, const std::string& what) {
        entries.push_back(entry_of(name, ranks, start_ours(model, ranks, what, options, seed)));
    };
    for (const int ranks : options.ranks)  // one rank communicates with no other: it is a copy
        add(model, ranks, ranks == 1 ? "--alone" : "");
    for (const int ranks : options.ranks)
        if (ranks > 1)
            add(model + "_copies", ranks, "--alone");
    for (const int ranks : options.ranks)
        if (model == "mlp")
            add(model + "_products", ranks, "--products");
    for (const int ranks : options.ranks)
        if (auto pytorch = start_pytorch_if_wanted(model, options, ranks))
            entries.push_back(entry_of(model + "_pytorch", ranks, std::move(*pytorch)));
    return entries;
}

// ---- The report

class TrainReport {
  public:
    // `is_own`: this bench starts all ranks itself, on this machine.
    TrainReport(const std::filesystem::path& csv, bool is_own)
        : is_own_(is_own),
          csv_(csv, {"model", "ranks", "batch_per_rank", "samples_per_s", "step_ms", "compute_ms",
                     "comm_ms", "exposed_ms", "mib_per_rank"}) {}

    void add(const std::deque<Entry>& entries, int batch) {
        for (const Entry& entry : entries)
            add(entry, batch);
        for (const Entry& entry : entries)
            if (entry.name.find('_') == std::string::npos)
                compare(entry, entries, batch);
    }

    void print() {
        if (!has_pytorch_ && is_own_)
            times_.note("PyTorch was not measured. --pytorch PYTHON names a Python that has it.");
        times_.note("Medians of a step. Communicating includes waiting for other ranks' buckets.");
        times_.note("Memory: of all processes, after the last round. What they share counts once.");
        ratios_.note("Medians of the rounds' ratios: all of them take turns in every round.");
        std::cout << times_ << "\n" << ratios_;
    }

  private:
    void add(const Entry& entry, int batch) {
        double part[4];
        for (std::size_t i = 0; i < 4; i++)
            part[i] = median(entry.parts[i]);
        const double samples_per_s = entry.ranks * batch / part[0];
        const double bytes_per_rank = entry.memory() / entry.ranks;
        csv_.row({entry.name, entry.ranks, batch, samples_per_s, part[0] * 1e3, part[1] * 1e3,
                  part[2] * 1e3, part[3] * 1e3, bytes_per_rank / (1 << 20)});
        has_pytorch_ |= entry.name.ends_with("_pytorch");
        times_.row({entry.name, std::to_string(entry.ranks), format_fixed(samples_per_s, 0),
                    format_seconds(part[0]), format_percent(spread(entry.parts[0])),
                    format_seconds(part[1]), format_seconds(part[2]), format_seconds(part[3]),
                    format_bytes(bytes_per_rank)});
    }

    void compare(const Entry& ours, const std::deque<Entry>& entries, int batch) {
        const std::string ranks = format_count(ours.ranks, "rank");
        // The book's own limits, for two cores.
        const bool is_held = is_own_ && ours.name == "mlp" && batch == 64 && kernels_run_on_cpu;
        for (const Entry& other : entries) {
            if (other.ranks != ours.ranks || other.name == ours.name ||
                !other.name.starts_with(ours.name + "_"))
                continue;
            const bool are_copies = other.name.ends_with("_copies");
            const bool are_products = other.name.ends_with("_products");
            const std::string least = are_copies        ? "0.85"
                                      : are_products    ? "0.9"
                                      : ours.ranks == 1 ? "1.4"
                                                        : "2.2";
            ratios_.row({ours.name + ", " + ranks,
                         are_copies     ? "as many copies without communication"
                         : are_products ? "the step's matrix products alone"
                                        : other.greeting,
                         format_fixed(median_ratio(other.parts[0], ours.parts[0]), 2),
                         is_held && ours.ranks <= (are_products ? 1 : 2) ? least : "-"});
        }
    }

    const bool is_own_;
    CsvWriter csv_;
    bool has_pytorch_ = false;
    Table times_{"Training",
                 {"model", "ranks", "samples/s", "a step", "spread", "computing", "communicating",
                  "exposed", "memory a rank"}};
    Table ratios_{"How many times as fast", {"this book", "as", "is", "at least"}};
};

// Some tenths of a second: on a GPU a step is a few hundred microseconds.
int steps_of_round(const std::string& model, bool quick) {
    const int steps = kernels_run_on_cpu ? (model == "mlp" ? 20 : 4) : 400;
    return steps / (quick ? 4 : 1);
}

// Lets all entries take turns.
void take_turns(std::deque<Entry>& entries, int steps, int rounds) {
    std::vector<Measurement> variants;
    for (Entry& entry : entries)
        variants.push_back([&entry, steps] { return entry.run(steps); });
    interleave(variants, 0, rounds);
}

void measure(const std::string& model, const TrainOptions& options, const CommonOptions& common,
             TrainReport& report) {
    std::deque<Entry> entries = start_all(model, options, common.seed);
    take_turns(entries, steps_of_round(model, common.quick), options.rounds);
    report.add(entries, options.batch);
}

// Measures the ranks of a job that mpirun or srun has started. All of them call it.
void measure_job(Rank& rank, const std::string& model, const TrainOptions& options,
                 const CommonOptions& common, TrainReport& report) {
    std::deque<Entry> entries;
    const auto add = [&](const std::string& name, bool alone) {
        entries.push_back({name, rank.world_size(), "",
                           training_round(rank, options, model, alone, common.seed),
                           [] { return std::numeric_limits<double>::quiet_NaN(); }});
    };
    add(model, rank.world_size() == 1);
    if (rank.world_size() > 1)
        add(model + "_copies", true);
    take_turns(entries, steps_of_round(model, common.quick), options.rounds);
    if (rank.rank() == 0)
        report.add(entries, options.batch);
}

int run_job_of_others(const std::vector<std::string>& models, const TrainOptions& options,
                      const CommonOptions& common) {
    if (options.pytorch != "auto" && options.pytorch != "off")
        throw OptionError(
            "--pytorch makes no sense here: PyTorch is measured where the bench starts the ranks "
            "itself, without mpirun.");
    World world(common);
    TrainReport report(world.has_rank_0() ? common.csv : "", false);
    for (const std::string& model : models)
        world.run([&](Rank& rank) {
            rank.select_device();
            measure_job(rank, model, options, common, report);
        });
    if (world.has_rank_0())
        report.print();
    return 0;
}

int run(int argc, char** argv) {
    TrainOptions options;
    Options parser("bench_train", "How fast several ranks train, beside PyTorch in the same run.");
    parser.add_ints("--ranks", options.ranks, {1, max_ranks},
                    "how many train together, one after the other");
    parser.add_choice("--model", options.model, {"mlp", "cnn", "both"}, "what to train");
    parser.add_int("--batch", options.batch, {1, 60'000}, "pictures a step and rank");
    parser.add_int("--rounds", options.rounds, {1, 10'000}, "how often to measure each in turn");
    parser.with_quick("--rounds", [&] { options.rounds = 3; });
    parser.add_text("--pytorch", options.pytorch,
                    "the Python whose PyTorch to measure; auto: python3, if it has one; off");
    parser.add_flag("--serve", options.serve,
                    "be measured: make a round for each line `run STEPS` of stdin");
    parser.add_flag("--alone", options.alone, "with --serve: every rank trains its own copy");
    parser.add_flag("--products", options.products,
                    "with --serve: every rank only makes the matrix products of the mlp's step");
    parser.refuse({"--link", "--data", "--trace"},
                  "this bench trains on made-up pictures as fast as the machine can");
    parser.example("--ranks 1,2,4 --csv train.csv", "one, two and four ranks");
    parser.example("--pytorch ~/torch/bin/python", "beside the PyTorch of a virtual environment");
    CommonOptions common = parser.parse(argc, argv);
    if (options.serve) {
        if (const std::optional<int> status = launch_processes(common, argv))
            return *status;
        if (!common.processes)
            common.ranks = options.ranks[0];
        World world(common);
        world.run([&](Rank& rank) { serve_rounds(rank, options, common.seed); });
        return 0;
    }
    std::vector<std::string> models;
    for (const std::string model : {"mlp", "cnn"})
        if (options.model == model || options.model == "both")
            models.push_back(model);
    if (find_starter(common) != StartedBy::none)
        return run_job_of_others(models, options, common);
    if (common.processes)
        throw OptionError(
            "--processes makes no sense here without --serve: the bench starts its processes "
            "itself; give it --ranks 1,2.");
    std::signal(SIGPIPE, SIG_IGN);  // a candidate that has died is reported as an error
    TrainReport report(common.csv, true);
    for (const std::string& model : models)
        measure(model, options, common, report);
    report.print();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run(argc, argv); });
}
