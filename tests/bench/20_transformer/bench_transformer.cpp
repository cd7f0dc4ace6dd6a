// Measures from how many tokens a second the transformer learns: this book beside PyTorch. Both
// take turns, a round each, so that a machine that slows down slows both. With --parts, where the
// time of a step goes.
#include <csignal>
#include <deque>
#include <filesystem>
#include <iostream>
#include <optional>

#include "03_network/layers/fused_optimizers.hpp"
#include "03_network/layers/small_training.hpp"
#include "05_ranks/world.hpp"
#include "10_nodes/make_communicator.hpp"
#include "15_overlap/ddp.hpp"
#include "15_overlap/support/timed_training.hpp"
#include "15_overlap/training.hpp"
#include "20_transformer/layers/step_memory.hpp"
#include "20_transformer/token_loss.hpp"
#include "20_transformer/transformer.hpp"
#include "20_transformer/words/tokenizer.hpp"
#include "common/report/bench.hpp"
#include "common/report/csv.hpp"
#include "common/report/options.hpp"
#include "common/report/process.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"
#include "tests/bench/15_overlap/pytorch.hpp"

namespace {

using namespace ddp;

struct TransformerBenchOptions {
    std::vector<int> ranks{1};
    std::string width = "both";
    int sentences = 64;
    int rounds = 7;
    std::string pytorch = "auto";  // or "off", or an interpreter
    bool serve = false;
    bool parts = false;
};

// ---- What is trained: as tests/golden/pytorch_train.py has it

constexpr int bench_vocabulary = 4'000, bench_length = 14, batches_in_memory = 16;

TransformerOptions options_of(int width) {
    return {.vocabulary = bench_vocabulary, .width = width, .feed_forward = 4 * width};
}

int length_of(int sentence) {
    return bench_length - 4 + sentence % 5;
}

int target_tokens(int sentences) {
    int count = 0;
    for (int sentence = 0; sentence < sentences; sentence++)
        count += length_of(sentence);
    return count;
}

// Makes sentences of 10 to 14 random tokens.
DeviceBatch make_batch(Device& device, int sentences, Random& random) {
    TokenBatch batch{.sentences = sentences, .length = bench_length};
    for (int sentence = 0; sentence < sentences; sentence++)
        for (std::vector<int>* row : {&batch.source, &batch.target_in, &batch.target_out})
            for (int i = 0; i < bench_length; i++)
                row->push_back(i < length_of(sentence)
                                   ? 4 + static_cast<int>(random.below(bench_vocabulary - 4))
                                   : pad_token);
    return to_device(device, batch);
}

class BenchTraining {
  public:
    // All ranks call it together. Everything passed must outlive this object.
    BenchTraining(Communicator& communicator, Device& device, Transformer& model,
                  DropoutMasks& masks, int sentences, Random& random)
        : rank_(communicator.rank()),
          device_(device),
          model_(model),
          masks_(masks),
          ddp_(communicator, device, model),
          optimizer_(model.parameters(), 1e-4),
          sentences_(sentences),
          tokens_(target_tokens(sentences)) {
        if (rank_.world_size() == 1)
            alone_.emplace(ddp_);
        for (int i = 0; i < batches_in_memory; i++)
            batches_.push_back(make_batch(device, sentences, random));
    }

    // Makes `steps` steps; returns the seconds from when all ranks began until all have ended.
    double run(int steps) {
        return time_steps(rank_, device_.stream(), steps, [this] { step(); });
    }

  private:
    void step() {
        const DeviceBatch& batch = batches_[steps_ % batches_in_memory];
        masks_.begin({.step = steps_++,
                      .samples = sentences_,
                      .first = rank_.rank(),
                      .stride = rank_.world_size()});
        const auto loss_of = [&](Tape& tape) {
            const Variable logits =
                ddp_.forward([&] { return model_.forward(tape, batch.source, batch.target_in); });
            return token_loss(logits, batch.target_out, 0.1, tokens_);
        };
        training_.step(loss_of, [&](Variable loss) { ddp_.backward(loss); });
    }

    Rank& rank_;
    Device& device_;
    Transformer& model_;
    DropoutMasks& masks_;
    DistributedDataParallel ddp_;
    FusedAdam optimizer_;
    const int sentences_, tokens_;
    std::optional<DistributedDataParallel::NoSync> alone_;
    SmallTraining training_{device_, optimizer_};
    std::vector<DeviceBatch> batches_;
    std::uint64_t steps_ = 0;
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

void serve_rounds(Rank& rank, const TransformerBenchOptions& options, std::uint64_t seed) {
    constexpr int warm_up_steps = 3;
    rank.select_device();
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    Random random(seed + static_cast<std::uint64_t>(rank.rank()));
    DropoutMasks masks(seed);
    Transformer model(device, options_of(std::stoi(options.width)), random, masks);
    const auto communicator = make_communicator("native", rank, ddp_arena_bytes(model));
    BenchTraining training(*communicator, device, model, masks, options.sentences, random);
    training.run(warm_up_steps);
    if (rank.rank() == 0)
        std::cout << "# this book, " << format_count(rank.world_size(), "rank") << std::endl;
    while (const int steps = steps_of_next_round(rank)) {
        const double seconds = training.run(steps);
        if (rank.rank() == 0)
            std::cout << seconds << std::endl;
    }
}

// ---- Where the time of a step goes

// Trains alone for `steps` steps, and prints the time of each part and the memory that a step
// takes.
void show_parts(Rank& rank, int width, int sentences, int steps, std::uint64_t seed,
                CsvWriter& csv) {
    rank.select_device();
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    Random random(seed);
    DropoutMasks masks(seed);
    Transformer model(device, options_of(width), random, masks);
    FusedAdam optimizer(model.parameters(), 1e-4);
    const DeviceBatch batch = make_batch(device, sentences, random);
    masks.begin({.samples = sentences});
    const StepMemory memory = measured_memory(device, model, batch);
    StepTimes times(device.stream());
    PartTimes parts(times);
    model.observe([&](Variable x, const std::string& part) { return parts.end_of(x, part); });
    const auto loss_of = [&](Tape& tape) {
        const Variable logits = model.forward(tape, batch.source, batch.target_in);
        const Variable loss = token_loss(logits, batch.target_out, 0.1, target_tokens(sentences));
        parts.end_of_forward("loss");
        return loss;
    };
    const auto backward = [&](Variable loss) {
        loss.tape->backward(loss);
        parts.end_of_backward();
    };
    SmallTraining training(device, optimizer);
    for (int step = 0; step < steps; step++) {
        masks.begin({.step = static_cast<std::uint64_t>(step), .samples = sentences});
        parts.begin();
        training.step(loss_of, backward);
        times.mark("optimizer");
        times.end();
    }
    times.finish();
    Table table("A step's time by part, width " + std::to_string(width), {"part", "time", "share"});
    for (const StepTimes::Part& part : times.parts()) {
        const double seconds = part.seconds / times.steps(), share = part.seconds / times.total();
        table.row({part.name, format_seconds(seconds), format_percent(share)});
        csv.row({width, part.name, seconds, share});
    }
    table.row({"a step", format_seconds(times.total() / times.steps()), format_percent(1)});
    table.note("Means of " + format_count(times.steps()) + " steps.");
    const StepMemory predicted =
        predicted_memory(options_of(width), model.parameters(), sentences, bench_length);
    std::cout << table << "\n" << memory_table(width, predicted, memory) << "\n";
}

// ---- All candidates

struct Entry {
    std::string name;
    int ranks;
    BenchmarkSubprocess program;
    std::vector<double> seconds = {};  // of a step, by round

    double run(int steps) {
        seconds.push_back(program.run(steps).at(0) / steps);
        return seconds.back();
    }
};

Entry start_ours(int width, int ranks, const TransformerBenchOptions& options, std::uint64_t seed) {
    std::optional<BenchmarkSubprocess> ours = BenchmarkSubprocess::start(
        {std::filesystem::read_symlink("/proc/self/exe"), "--serve",
         kernels_run_on_cpu ? "--processes" : "--ranks",  // a GPU serves one process at a time
         std::to_string(ranks), "--width", std::to_string(width), "--sentences",
         std::to_string(options.sentences), "--seed", std::to_string(seed), "--timeout", "3600"},
        environment_with({}), false);
    if (!ours)
        throw std::runtime_error("this program has started itself with " + std::to_string(ranks) +
                                 " ranks, and the new process ended at once");
    return {"this book", ranks, std::move(*ours)};
}

// Starts both for each number of ranks; PyTorch only if it is wanted and there.
std::deque<Entry> start_all(int width, const TransformerBenchOptions& options, std::uint64_t seed) {
    std::deque<Entry> entries;
    for (const int ranks : options.ranks) {
        entries.push_back(start_ours(width, ranks, options, seed));
        if (options.pytorch == "off" || !kernels_run_on_cpu)
            continue;
        const std::string python = options.pytorch == "auto" ? "" : options.pytorch;
        auto pytorch =
            start_pytorch(python, "transformer" + std::to_string(width), options.sentences, ranks);
        if (!pytorch && !python.empty())
            throw OptionError("--pytorch " + python + " is no Python that has PyTorch: `" + python +
                              " -c 'import torch'` must work.");
        if (pytorch)
            entries.push_back({pytorch->greeting(), ranks, std::move(*pytorch)});
    }
    return entries;
}

class TransformerReport {
  public:
    explicit TransformerReport(const std::filesystem::path& csv)
        : csv_(csv,
               {"program", "width", "ranks", "sentences_per_rank", "tokens_per_s", "step_ms"}) {}

    void add(const std::deque<Entry>& entries, int width, int sentences) {
        for (const Entry& entry : entries) {
            const double seconds = median(entry.seconds);
            has_pytorch_ |= entry.name != "this book";
            const double tokens_per_s = entry.ranks * target_tokens(sentences) / seconds;
            csv_.row({entry.name, width, entry.ranks, sentences, tokens_per_s, seconds * 1e3});
            const Entry* ours = &entry;
            for (const Entry& other : entries)
                if (other.ranks == entry.ranks && other.name == "this book")
                    ours = &other;
            table_.row({std::to_string(width), std::to_string(entry.ranks), entry.name,
                        format_fixed(tokens_per_s, 0), format_seconds(seconds),
                        format_percent(spread(entry.seconds)),
                        format_fixed(median_ratio(entry.seconds, ours->seconds), 2)});
        }
    }
    void print() {
        if (!has_pytorch_)
            table_.note("PyTorch was not measured. --pytorch PYTHON names a Python that has it.");
        table_.note(
            "Medians. The last column: how many times as fast this book is, the median of the "
            "rounds' ratios.");
        std::cout << table_;
    }

  private:
    CsvWriter csv_;
    bool has_pytorch_ = false;
    Table table_{"Training a transformer",
                 {"width", "ranks", "program", "tokens/s", "a step", "spread", "this book is"}};
};

int run(int argc, char** argv) {
    TransformerBenchOptions options;
    Options parser("bench_transformer",
                   "How fast a transformer trains, beside PyTorch in the same run.");
    parser.add_ints("--ranks", options.ranks, {1, max_ranks},
                    "how many train together, one after the other");
    parser.add_choice("--width", options.width, {"128", "256", "both"}, "numbers of a token");
    parser.add_int("--sentences", options.sentences, {1, 10'000},
                   "pairs of sentences a step and rank");
    parser.add_int("--rounds", options.rounds, {1, 10'000}, "how often to measure each in turn");
    parser.with_quick("--rounds", [&] { options.rounds = 1; });
    parser.add_text("--pytorch", options.pytorch,
                    "the Python whose PyTorch to measure; auto: python3, if it has one; off");
    parser.add_flag("--serve", options.serve,
                    "be measured: make a round for each line `run STEPS` of stdin");
    parser.add_flag("--parts", options.parts,
                    "show the time of a step's parts and its memory instead, on one rank");
    parser.refuse({"--link", "--data", "--trace"},
                  "this bench trains on made-up sentences as fast as the machine can");
    parser.example("--ranks 1,2 --width 128", "one and two ranks");
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
    const std::vector<int> widths = options.width == "both"
                                        ? std::vector<int>{128, 256}
                                        : std::vector<int>{std::stoi(options.width)};
    if (options.parts) {
        common.ranks = 1;
        CsvWriter csv(beside(common.csv, "parts"), {"width", "part", "seconds", "share"});
        World world(common);
        world.run([&](Rank& rank) {
            for (const int width : widths)
                show_parts(rank, width, options.sentences, common.quick ? 2 : 20, common.seed, csv);
        });
        return 0;
    }
    std::signal(SIGPIPE, SIG_IGN);  // a candidate that has died is reported as an error
    TransformerReport report(common.csv);
    const int steps = common.quick ? 1 : 3;
    for (const int width : widths) {
        std::deque<Entry> entries = start_all(width, options, common.seed);
        std::vector<Measurement> variants;
        for (Entry& entry : entries)
            variants.push_back([&entry, steps] { return entry.run(steps); });
        interleave(variants, 0, options.rounds);
        report.add(entries, width, options.sentences);
    }
    report.print();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run(argc, argv); });
}
