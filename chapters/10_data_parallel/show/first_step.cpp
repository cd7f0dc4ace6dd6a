#include "10_data_parallel/show/first_step.hpp"

#include <iostream>
#include <sstream>

#include "common/report/table.hpp"

namespace ddp {

FirstStep take_first_step(Communicator& communicator, Device& device) {
    Rank& rank = communicator.rank();
    Stream& stream = device.stream();
    const int r = rank.rank(), ranks = rank.world_size();
    FirstStep step;
    ArenaBuffer<float> parameter = communicator.allocate<float>(1);
    ArenaBuffer<float> gradient = communicator.allocate<float>(1);
    const auto read = [&](ArenaBuffer<float>& buffer) {
        communicator.synchronize(stream);
        return buffer.to_host()[0];
    };

    // Broadcast: all begin with rank 0's parameter.
    parameter.copy_from(std::vector<float>{static_cast<float>(r + 1)});
    rank.barrier();
    communicator.broadcast(parameter.data(), 1, 0, stream, "parameter");
    step.begin = read(parameter);

    // Map, and local work: the loss of sample x is (w - x)^2 / 2, and its gradient w - x. The
    // samples of rank r lie around w - 2 (r + 1).
    float sum = 0;
    for (int sample = r; sample < samples_of_first_step; sample += ranks, step.samples++) {
        const float x = step.begin - 2 * static_cast<float>(r + 1);
        sum += step.begin - x;
    }
    step.gradient = sum / static_cast<float>(step.samples);

    // All-reduce, and a step of its own on every rank.
    gradient.copy_from(std::vector<float>{step.gradient});
    rank.barrier();
    communicator.all_reduce(gradient.data(), gradient.data(), 1, ReduceOp::average, stream,
                            "gradient");
    step.average = read(gradient);
    step.end = step.begin - 0.1f * step.average;
    return step;
}

void show_first_step(Communicator& communicator, Device& device) {
    const FirstStep mine = take_first_step(communicator, device);
    Rank& rank = communicator.rank();
    std::ostringstream line;
    line << mine.samples << ' ' << mine.begin << ' ' << mine.gradient << ' ' << mine.average << ' '
         << mine.end;
    Table table("One step with " + std::to_string(samples_of_first_step) + " samples, by hand",
                {"rank", "samples", "parameter", "its gradient", "average", "next parameter"});
    int r = 0;
    for (const std::string& each : rank.all_gather(line.str())) {
        std::istringstream words(each);
        std::vector<std::string> cells{std::to_string(r++)};
        for (std::string word; words >> word;)
            cells.push_back(word);
        table.row(cells);
    }
    table.note("Broadcast, map, local work, all-reduce, step. The parameter is rank 0's.");
    if (rank.rank() == 0)
        std::cout << table << "\n";
}

}  // namespace ddp
