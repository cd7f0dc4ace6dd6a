#include "11_data_parallel/show/small_numbers.hpp"

#include <iostream>
#include <sstream>

#include "common/report/table.hpp"

namespace ddp {
namespace {

// Returns the number in as few digits as it needs: "0.5".
std::string short_text(float number) {
    std::ostringstream text;
    text << number;
    return text.str();
}

}  // namespace

FirstStep take_first_step(Communicator& communicator, Device& device) {
    Rank& rank = communicator.rank();
    Stream& stream = device.stream();
    const int r = rank.rank(), ranks = rank.world_size();
    FirstStep step;
    ArenaBuffer<float> parameter = communicator.allocate<float>(1);
    ArenaBuffer<float> gradient = communicator.allocate<float>(1);
    const auto read = [&](ArenaBuffer<float>& buffer) {
        communicator.synchronize(stream);
        return buffer.to_host_now()[0];
    };

    // Broadcast: every rank begins with rank 0's parameter.
    parameter.copy_from(std::vector<float>{static_cast<float>(r + 1)});
    rank.barrier();
    communicator.broadcast(parameter.data(), 1, 0, stream, "parameter");
    step.begin = read(parameter);

    // Map: rank r takes the samples r, r + W, r + 2 W, ...
    // Local work: the loss of sample x is (w - x)^2 / 2, and its gradient is w - x. All samples of
    // rank r are w - 2 (r + 1).
    float sum = 0;
    for (int sample = r; sample < samples_of_first_step; sample += ranks, step.samples++) {
        const float x = step.begin - 2 * static_cast<float>(r + 1);
        sum += step.begin - x;
    }
    step.gradient = sum / static_cast<float>(step.samples);

    // All-reduce: the average of the gradients, on every rank.
    gradient.copy_from(std::vector<float>{step.gradient});
    rank.barrier();
    communicator.all_reduce(gradient.data(), gradient.data(), 1, ReduceOp::average, stream,
                            "gradient");
    step.average = read(gradient);

    // Step: every rank takes its own, from equal numbers.
    step.end = step.begin - 0.1f * step.average;
    return step;
}

void show_first_step(Communicator& communicator, Device& device) {
    Rank& rank = communicator.rank();
    const std::vector<FirstStep> steps = rank.all_gather(take_first_step(communicator, device));
    if (rank.rank() != 0)
        return;
    Table table("One step with " + std::to_string(samples_of_first_step) + " samples, by hand",
                {"rank", "samples", "parameter", "its gradient", "average", "next parameter"});
    int r = 0;
    for (const FirstStep& each : steps)
        table.row({std::to_string(r++), std::to_string(each.samples), short_text(each.begin),
                   short_text(each.gradient), short_text(each.average), short_text(each.end)});
    table.note(
        "From left to right: map, broadcast, local work, all-reduce, step. Every rank begins with "
        "rank 0's parameter.");
    std::cout << table << "\n";
}

}  // namespace ddp
