// A ping-pong, as in 06_messages, but between any two ranks of the job: N messages there and N
// back, enqueued at once, and the time of one of them.
//
//     rank a   mark  send ──▶           receive   ...   mark
//     rank b               receive ──▶ send       ...          (marks apart) / 2N: one message
#include "tools/cluster/links.hpp"

#include <algorithm>

#include "10_nodes/make_communicator.hpp"
#include "10_nodes/placement.hpp"

namespace ddp {
namespace {

// Returns how many round trips fill a batch: the clock is coarse, and the first message waits for
// the other rank to come. No batch takes much longer, since all other ranks wait for its end.
int trips_of_batch(double seconds_of_message) {
    constexpr double batch_s = 0.02;
    return static_cast<int>(std::clamp(batch_s / (2 * seconds_of_message), 1.0, 50.0));
}

// Makes `trips` round trips, and returns the seconds of one message.
double seconds_of_message(Communicator& communicator, unsigned char* data, std::size_t bytes,
                          int trips, Stream& stream) {
    Event begin, end;
    begin.record(stream);
    for (int i = 0; i < 2 * trips; i++) {
        if (i % 2 == communicator.index())
            communicator.send(data, bytes, 1 - communicator.index(), stream, "ping-pong");
        else
            communicator.receive(data, bytes, 1 - communicator.index(), stream, "ping-pong");
    }
    end.record(stream);
    communicator.synchronize(stream);
    return end.seconds_since(begin) / (2 * trips);
}

// Measures the messages of the ranks `from` and `to`. All ranks call it; all others wait.
LinkTimes measure_link(Rank& rank, int from, int to, const std::vector<std::size_t>& sizes,
                       int batches) {
    const bool takes_part = rank.rank() == from || rank.rank() == to;
    const Group pair = takes_part ? Group({from, to}) : Group({rank.rank()});
    const std::size_t most = sizes.back();
    const auto communicator =
        make_communicator("native", rank, most + SharedArena::unit, {.group = pair});
    ArenaBuffer<unsigned char> data = communicator->allocate<unsigned char>(most);
    Stream stream;
    rank.barrier();
    LinkTimes times{{}, from, to};
    for (const std::size_t bytes : sizes) {
        std::vector<double> seconds;
        int trips = 1;
        for (int batch = -1; batch < batches; batch++) {
            const double mine =
                takes_part ? seconds_of_message(*communicator, data.data(), bytes, trips, stream)
                           : 0;
            const double each = rank.broadcast(mine, from);
            if (batch >= 0)
                seconds.push_back(each);
            trips = trips_of_batch(each);  // the first one has told
        }
        // The fastest batch counts: whatever disturbs a message makes it slower.
        times.messages.push_back({bytes, *std::ranges::min_element(seconds)});
    }
    return times;
}

}  // namespace

CostModel LinkTimes::cost() const {
    CostModel cost = fit_cost(messages);
    // Where short messages were disturbed and long ones were not, no time is left for the bytes.
    if (cost.beta_s_per_byte == 0)
        cost.beta_s_per_byte = messages.back().seconds / static_cast<double>(messages.back().bytes);
    return cost;
}

std::vector<std::size_t> message_sizes(std::size_t most) {
    std::vector<std::size_t> sizes;
    for (std::size_t bytes = 64; bytes <= most; bytes *= 4)
        sizes.push_back(bytes);
    return sizes;
}

ClusterLinks measure_links(Rank& rank, const std::vector<std::size_t>& sizes, int batches) {
    const Placement placement =
        placement_of(Group::all(rank.job()), rank.job(), rank.rank(), std::nullopt);
    const std::vector<int>& by_node = placement.by_node;
    ClusterLinks links;
    // The first two ranks of the first node that has two, ...
    std::size_t first = 0;
    for (const int size : placement.sizes) {
        if (size > 1 && !links.inside.is_there())
            links.inside = measure_link(rank, by_node[first], by_node[first + 1], sizes, batches);
        first += static_cast<std::size_t>(size);
    }
    // ... and the first ranks of the first two nodes.
    const auto second = static_cast<std::size_t>(placement.sizes[0]);
    if (placement.sizes.size() > 1)
        links.between = measure_link(rank, by_node[0], by_node[second], sizes, batches);
    return links;
}

}  // namespace ddp
