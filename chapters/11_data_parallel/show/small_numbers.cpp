#include "11_data_parallel/show/small_numbers.hpp"

#include <iostream>
#include <sstream>

#include "09_all_reduce/all_reduce.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// Returns the number in as few digits as it needs: "0.5".
std::string short_text(float number) {
    std::ostringstream text;
    text << number;
    return text.str();
}

// A row of the table: the numbers that one rank has found.
struct AveragesRow {
    int samples, correct;
    double own, all_reduced, reduced, mean_of_means;  // accuracies
    std::size_t gathered;                             // predictions
};

}  // namespace

// ---- One step by hand

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

// ---- Metrics

Score shown_score(int rank) {
    const double seen = 10 * (rank + 1);
    return {seen - 5, seen};
}

void show_averages(Communicator& communicator, Stream& stream) {
    Rank& rank = communicator.rank();
    const int r = rank.rank();
    const Score mine = shown_score(r);
    const int samples = static_cast<int>(mine.samples), correct = static_cast<int>(mine.correct);
    AveragesRow row{samples, correct, mine.accuracy(), 0, 0, 0, 0};
    row.all_reduced = all_reduce_score(communicator, stream, mine).accuracy();
    row.reduced = reduce_score(communicator, stream, mine).accuracy();
    row.mean_of_means = mean_of_accuracies(communicator, stream, mine);
    const std::vector<int> predictions(static_cast<std::size_t>(samples), r);
    for (const std::vector<int>& each : gather_predictions(communicator, stream, predictions))
        row.gathered += each.size();
    const std::vector<AveragesRow> rows = rank.all_gather(row);
    if (r != 0)
        return;
    Table table("The accuracy of a test in which ranks have seen different numbers of samples",
                {"rank", "seen", "correct", "its own", "all_reduce", "reduce", "mean of means",
                 "all_gather"});
    int number = 0;
    for (const AveragesRow& each : rows)
        table.row({std::to_string(number++), std::to_string(each.samples),
                   std::to_string(each.correct), format_fixed(each.own, 3),
                   format_fixed(each.all_reduced, 3), format_fixed(each.reduced, 3),
                   format_fixed(each.mean_of_means, 3), std::to_string(each.gathered)});
    table.note(
        "all_reduce and reduce sum up correct and seen over the ranks and divide last. Only rank 0 "
        "receives the result of reduce. all_gather is a count: each rank then has all predictions, "
        "for any metric.");
    std::cout << table << "\n";
}

void validate_on_rank_0(Rank& rank, bool is_for_all) {
    constexpr double timeout_s = 1;
    // With a short time-out: this run is meant to fail.
    Peers peers(rank, 1 << 16, timeout_s);
    ArenaBuffer<float> loss = peers.allocate<float>(1);
    loss.copy_from(std::vector<float>{1});
    Stream stream;
    rank.barrier();
    // The mistake: a collective that one rank calls. (If all ranks call it, it is right.)
    if (rank.rank() == 0 || is_for_all) {
        two_shot_all_reduce(peers, loss.data(), loss.data(), 1, ReduceOp::average, stream,
                            "validation loss");
        peers.synchronize(stream);
    }
    // The other ranks go on without rank 0: their next collective is the next step's.
    if (!is_for_all)
        two_shot_all_reduce(peers, loss.data(), loss.data(), 1, ReduceOp::average, stream,
                            "gradients");
    peers.synchronize(stream);
    rank.barrier();
}

}  // namespace ddp
