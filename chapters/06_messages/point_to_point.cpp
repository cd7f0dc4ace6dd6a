// A ping-pong, and the time of one message:
//
//     rank 0   send ──▶           receive     send ──▶           receive
//     rank 1          receive ──▶ send               receive ──▶ send
//              ├─── mark to mark ────────┤    seconds of a message: half of it
//
// Short messages all take nearly the same time: that is alpha. For long ones alpha hardly counts:
// (seconds - alpha) / bytes is beta.
#include "06_messages/point_to_point.hpp"

#include <algorithm>
#include <stdexcept>

#include "common/report/stats.hpp"

namespace ddp {

MessageTime ping_pong(Peers& peers, std::size_t bytes, int rounds) {
    constexpr int warm_up = 3;
    const int rank = peers.rank().rank();
    if (rank > 1)
        return {bytes, 0};
    Stream stream;
    ArenaBuffer<unsigned char> data = peers.allocate<unsigned char>(bytes);
    std::vector<Event> marks(static_cast<std::size_t>(warm_up + rounds + 1));
    // Everything is enqueued at once and timed by events on the stream: the host's work between two
    // messages is not measured.
    for (Event& mark : marks) {
        mark.record(stream);
        if (&mark == &marks.back())
            break;
        for (int turn : {0, 1}) {
            if (turn == rank)
                peers.send(data.data(), bytes, 1 - rank, stream, "ping-pong");
            else
                peers.receive(data.data(), bytes, 1 - rank, stream, "ping-pong");
        }
    }
    peers.synchronize(stream);
    // The first rounds only warm up.
    std::vector<double> halves;
    for (std::size_t i = warm_up; i + 1 < marks.size(); i++)
        halves.push_back(marks[i + 1].seconds_since(marks[i]) / 2);
    return {bytes, median(halves)};
}

CostModel fit_cost(std::span<const MessageTime> times) {
    const std::size_t third = times.size() / 3;
    if (third == 0)
        throw std::invalid_argument("alpha and beta need three points: measure more sizes");
    // alpha: the shortest third.
    std::vector<double> alphas, betas;
    for (const MessageTime& time : times.first(third))
        alphas.push_back(time.seconds);
    const double alpha = median(alphas);
    // beta: the longest third.
    for (const MessageTime& time : times.last(third))
        betas.push_back((time.seconds - alpha) / static_cast<double>(time.bytes));
    return {alpha, std::max(0.0, median(betas))};
}

}  // namespace ddp
