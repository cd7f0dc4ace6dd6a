// A step's memory against time, in micro-batches of several sizes; sampled at every allocation and
// release:
//
//     512 pictures at a time  ▇▇▇▇▇▇▇▇▇███████    forward fills the memory, backward empties it
//      64 pictures at a time  ▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃    eight times an eighth, above the parameters
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include "03_network/models.hpp"
#include "04_gradient_accumulation/batch_models.hpp"
#include "04_gradient_accumulation/show/picture_report.hpp"
#include "common/report/bench.hpp"
#include "common/report/csv.hpp"
#include "common/report/main.hpp"
#include "common/report/options.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

constexpr std::size_t columns = 64;           // of a drawn line
constexpr std::size_t max_micro_batches = 8;  // more of them cannot be told apart in it

// The memory that tensors hold from one moment on.
struct MemoryChange {
    double seconds;  // since the step's beginning
    std::string phase;
    std::size_t bytes;
};

// Takes two steps and returns the memory's changes in the second: the first allocates what both
// use. Waits for the device at every change, so that the times are the device's.
std::vector<MemoryChange> memory_of_step(const LabelledImages& images, Samples batch, int size,
                                         std::uint64_t seed) {
    Device device;
    Random random(seed);
    PictureModel model(device, images, picture_hidden, random);
    PlainSgd optimizer(model.parameters(), 0.05);
    Tape tape(device);
    std::string phase = "forward";
    const auto step = [&] {
        learn_batch(tape, optimizer, micro_batches(batch, size), [&](Tape& on, Samples samples) {
            phase = "forward";
            const Variable loss = model.loss(on, samples);
            phase = "backward";
            return loss;
        });
        device.stream().synchronize();
    };
    step();
    std::vector<MemoryChange> changes;
    phase = "forward";
    const Stopwatch watch;
    const auto record = [&](const Device::Memory& now) {
        cudaStreamSynchronize(device.stream());  // an error is reported by the next checked call
        changes.push_back({watch.seconds(), phase, now.live_bytes});
    };
    record(device.memory());
    device.observe_memory(record);
    step();
    device.observe_memory({});
    record(device.memory());
    return changes;
}

// Draws the most memory in each of the line's columns, as a block of eight heights.
std::string line_of(const std::vector<MemoryChange>& changes, std::size_t most) {
    constexpr std::array<const char*, 8> blocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    std::array<std::size_t, columns> bytes{};
    const double length = changes.back().seconds;
    for (std::size_t i = 0; i + 1 < changes.size(); i++) {
        // The memory stays as it is until the next change.
        const auto column = [&](double seconds) {
            return std::min(columns - 1, static_cast<std::size_t>(seconds / length * columns));
        };
        for (std::size_t at = column(changes[i].seconds); at <= column(changes[i + 1].seconds);
             at++)
            bytes[at] = std::max(bytes[at], changes[i].bytes);
    }
    std::string line;
    for (const std::size_t here : bytes)
        line += blocks[std::min<std::size_t>(7, 8 * here / (most + 1))];
    return line;
}

// Takes a step with each size that divides the batch into at most `max_micro_batches`, and prints
// how much memory tensors hold from the step's beginning to its end.
void show_memory_over_time(const LabelledImages& images, const PictureOptions& options,
                           std::uint64_t seed, const std::filesystem::path& csv) {
    const Samples batch{0, options.batch};
    std::vector<std::pair<int, std::vector<MemoryChange>>> steps;
    for (const int size : options.micro_batch)
        if (split(batch, size).size() <= max_micro_batches)
            steps.emplace_back(size, memory_of_step(images, batch, size, seed));
    if (steps.empty()) {
        std::error_code ignored;
        std::filesystem::remove(csv, ignored);  // of an earlier run
        std::cout << "Memory during one step is drawn where the step has at most "
                  << max_micro_batches << " micro-batches: here there are "
                  << split(batch, options.micro_batch.front()).size() << ".\n";
        return;
    }
    CsvWriter file(csv, {"pictures", "phase", "seconds", "bytes"});
    std::size_t most = 0;
    for (const auto& [size, changes] : steps)
        for (const MemoryChange& change : changes) {
            file.row({size, change.phase, change.seconds, change.bytes});
            most = std::max(most, change.bytes);
        }
    std::cout << "Memory during one step, from its beginning to its end\n";
    for (const auto& [size, changes] : steps) {
        const std::string name = std::to_string(size) + " pictures at a time";
        std::cout << std::string(26 - std::min<std::size_t>(25, name.size()), ' ') << name << "  "
                  << line_of(changes, most) << "\n";
    }
    std::cout << "The highest block is " << format_bytes(static_cast<double>(most))
              << ". Each line is as long as its own step took.\n";
}

int run(int argc, char** argv) {
    PictureOptions options;
    Options parser("bench_micro_batches", "The memory of a step, from its beginning to its end.");
    add_picture_sizes(parser, options);
    parser.refuse({"--ranks", "--processes", "--link", "--timeout", "--trace"},
                  "this chapter computes on one device; ranks begin in 05_ranks");
    parser.example("--batch 4096 --micro-batch 4096,512", "a larger batch, whole and divided");
    const CommonOptions common = parser.parse(argc, argv);
    const LabelledImages images = load_data(common).train;
    show_memory_over_time(images, checked(options, images), common.seed, common.csv);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_main([&] { return run(argc, argv); });
}
