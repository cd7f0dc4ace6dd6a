#include "10_data_parallel/averages.hpp"

#include <algorithm>
#include <iostream>

#include "09_all_reduce/all_reduce.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

using Numbers = std::vector<double>;

// What `call(data)` makes of numbers in the communicator's memory.
template <class Call>
Numbers send(Communicator& communicator, Stream& stream, const Numbers& mine, const Call& call) {
    ArenaBuffer<double> data = communicator.allocate<double>(mine.size());
    data.copy_from(mine);
    communicator.rank().barrier();  // nobody is reading what was here before
    call(data.data());
    communicator.synchronize(stream);
    Numbers result = data.to_host();
    communicator.rank().barrier();
    return result;
}

Numbers all_reduce(Communicator& communicator, Stream& stream, const Numbers& mine, ReduceOp op) {
    return send(communicator, stream, mine, [&](double* data) {
        communicator.all_reduce(data, data, mine.size(), op, stream, "metrics");
    });
}

}  // namespace

Score all_reduce_score(Communicator& communicator, Stream& stream, const Score& mine) {
    const Numbers sum =
        all_reduce(communicator, stream, {mine.correct, mine.samples}, ReduceOp::sum);
    return {sum[0], sum[1]};
}

Score reduce_score(Communicator& communicator, Stream& stream, const Score& mine) {
    const Numbers sum = send(communicator, stream, {mine.correct, mine.samples}, [&](double* data) {
        communicator.reduce(data, data, 2, ReduceOp::sum, 0, stream, "metrics");
    });
    return communicator.rank().rank() == 0 ? Score{sum[0], sum[1]} : mine;
}

double mean_of_accuracies(Communicator& communicator, Stream& stream, const Score& mine) {
    return all_reduce(communicator, stream, {mine.accuracy()}, ReduceOp::average)[0];
}

std::vector<std::vector<int>> gather_predictions(Communicator& communicator, Stream& stream,
                                                 const std::vector<int>& mine) {
    const auto ranks = static_cast<std::size_t>(communicator.world_size());
    const auto most = static_cast<std::size_t>(
        all_reduce(communicator, stream, {static_cast<double>(mine.size())}, ReduceOp::maximum)[0]);
    std::vector<int> filled(most + 1, -1);  // how many there are, and they
    filled[0] = static_cast<int>(mine.size());
    std::ranges::copy(mine, filled.begin() + 1);
    ArenaBuffer<int> own = communicator.allocate<int>(filled.size());
    ArenaBuffer<int> all = communicator.allocate<int>(filled.size() * ranks);
    own.copy_from(filled);
    communicator.rank().barrier();
    communicator.all_gather(own.data(), all.data(), filled.size(), stream, "predictions");
    communicator.synchronize(stream);
    const std::vector<int> gathered = all.to_host();
    communicator.rank().barrier();
    std::vector<std::vector<int>> by_rank;
    for (std::size_t r = 0; r < ranks; r++) {
        const auto begin = gathered.begin() + static_cast<std::ptrdiff_t>(r * filled.size());
        by_rank.emplace_back(begin + 1, begin + 1 + *begin);
    }
    return by_rank;
}

void show_averages(Communicator& communicator, Stream& stream) {
    const int r = communicator.rank().rank();
    // The first half of a rank's predictions is right on even ranks, and all are on odd ones.
    const int samples = 10 * (r + 1), correct = r % 2 == 0 ? samples / 2 : samples;
    const Score mine{static_cast<double>(correct), static_cast<double>(samples)};
    const Score all = all_reduce_score(communicator, stream, mine);
    const Score reduced = reduce_score(communicator, stream, mine);
    const double wrong = mean_of_accuracies(communicator, stream, mine);
    const std::vector<int> predictions(static_cast<std::size_t>(samples), r);
    std::size_t gathered = 0;
    for (const std::vector<int>& each : gather_predictions(communicator, stream, predictions))
        gathered += each.size();
    const auto columns = communicator.rank().all_gather(
        std::to_string(samples) + " " + std::to_string(correct) + " " +
        format_fixed(mine.accuracy(), 3) + " " + format_fixed(all.accuracy(), 3) + " " +
        format_fixed(reduced.accuracy(), 3) + " " + format_fixed(wrong, 3) + " " +
        std::to_string(gathered));
    Table table("The accuracy of a test in which ranks have seen different numbers of pictures",
                {"rank", "seen", "right", "its own", "all_reduce", "reduce", "mean of means",
                 "all_gather"});
    for (std::size_t rank = 0; rank < columns.size(); rank++) {
        std::vector<std::string> cells{std::to_string(rank)};
        for (std::size_t begin = 0; begin <= columns[rank].size();) {
            const std::size_t end = std::min(columns[rank].find(' ', begin), columns[rank].size());
            cells.push_back(columns[rank].substr(begin, end - begin));
            begin = end + 1;
        }
        table.row(cells);
    }
    table.note(
        "all_reduce and reduce add up right and seen, and divide then; reduce tells rank 0 "
        "only. all_gather: how many predictions a rank then has.");
    if (r == 0)
        std::cout << table << "\n";
}

void validate_on_rank_0(Rank& rank, bool is_for_all) {
    constexpr double timeout_s = 1;
    Peers peers(rank, 1 << 16, timeout_s);
    ArenaBuffer<float> loss = peers.allocate<float>(1);
    loss.copy_from(std::vector<float>{1});
    rank.barrier();
    Stream stream;
    if (rank.rank() == 0 || is_for_all) {
        two_shot_all_reduce(peers, loss.data(), loss.data(), 1, ReduceOp::average, stream,
                            "validation loss");
        peers.synchronize(stream);
    }
    if (!is_for_all)  // the others have gone on to the next step
        two_shot_all_reduce(peers, loss.data(), loss.data(), 1, ReduceOp::average, stream,
                            "gradients");
    peers.synchronize(stream);
    rank.barrier();
}

}  // namespace ddp
