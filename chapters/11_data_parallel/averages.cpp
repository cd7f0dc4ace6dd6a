// A metric over all ranks:
//
//     all_reduce   sum of correct, sum of seen, on every rank; then divide
//     reduce       the same sums on rank 0 only
//     average      the mean of the ranks' accuracies: wrong if they have seen different numbers
//     all_gather   all predictions on every rank, padded to the same number
#include "11_data_parallel/averages.hpp"

#include <algorithm>

namespace ddp {
namespace {

using Numbers = std::vector<double>;

// Copies `mine` into memory of the communicator, calls the collective with it, and returns the
// result.
template <class Call>
Numbers in_memory_of(Communicator& communicator, Stream& stream, const Numbers& mine,
                     const Call& call) {
    ArenaBuffer<double> data = communicator.allocate<double>(mine.size());
    data.copy_from(mine);
    communicator.rank().barrier();  // every rank has filled its memory
    call(data.data());
    communicator.synchronize(stream);
    Numbers result = data.to_host_now();
    communicator.rank().barrier();  // no rank reads this memory any more: it may be freed
    return result;
}

Numbers all_reduce(Communicator& communicator, Stream& stream, const Numbers& mine, ReduceOp op) {
    return in_memory_of(communicator, stream, mine, [&](double* data) {
        communicator.all_reduce(data, data, mine.size(), op, stream, "metrics");
    });
}

}  // namespace

// One message for both numbers: two all-reduces would pay the latency twice.
Score all_reduce_score(Communicator& communicator, Stream& stream, const Score& mine) {
    const Numbers sum =
        all_reduce(communicator, stream, {mine.correct, mine.samples}, ReduceOp::sum);
    return {sum[0], sum[1]};
}

// Only rank 0 receives the sums. On the other ranks `data` holds garbage then, so they return
// their own score.
Score reduce_score(Communicator& communicator, Stream& stream, const Score& mine) {
    const Numbers sum =
        in_memory_of(communicator, stream, {mine.correct, mine.samples}, [&](double* data) {
            communicator.reduce(data, data, 2, ReduceOp::sum, 0, stream, "metrics");
        });
    return communicator.index() == 0 ? Score{sum[0], sum[1]} : mine;
}

// Each rank divides first: the number of its samples is lost, and all ranks weigh the same.
double mean_of_accuracies(Communicator& communicator, Stream& stream, const Score& mine) {
    return all_reduce(communicator, stream, {mine.accuracy()}, ReduceOp::average)[0];
}

std::vector<std::vector<int>> gather_predictions(Communicator& communicator, Stream& stream,
                                                 const std::vector<int>& mine) {
    const auto ranks = static_cast<std::size_t>(communicator.world_size());
    // An all-gather needs equally many elements from every rank: agree on the largest number first.
    const auto most = static_cast<std::size_t>(
        all_reduce(communicator, stream, {static_cast<double>(mine.size())}, ReduceOp::maximum)[0]);
    std::vector<int> filled(most + 1, -1);  // [count, the predictions, -1 ...]
    filled[0] = static_cast<int>(mine.size());
    std::ranges::copy(mine, filled.begin() + 1);
    // In memory of the communicator: this rank's part, and room for the parts of all ranks.
    ArenaBuffer<int> own = communicator.allocate<int>(filled.size());
    ArenaBuffer<int> all = communicator.allocate<int>(filled.size() * ranks);
    own.copy_from(filled);
    communicator.rank().barrier();  // every rank has filled its part
    communicator.all_gather(own.data(), all.data(), filled.size(), stream, "predictions");
    communicator.synchronize(stream);
    const std::vector<int> gathered = all.to_host_now();
    communicator.rank().barrier();  // all have read it: the memory may be freed
    // Cut each rank's predictions to their count.
    std::vector<std::vector<int>> by_rank;
    for (std::size_t r = 0; r < ranks; r++) {
        const auto begin = gathered.begin() + static_cast<std::ptrdiff_t>(r * filled.size());
        by_rank.emplace_back(begin + 1, begin + 1 + *begin);
    }
    return by_rank;
}

}  // namespace ddp
