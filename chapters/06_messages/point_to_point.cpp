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

#include "06_messages/support/gate.hpp"
#include "common/report/stats.hpp"

namespace ddp {

MessageTime ping_pong(Peers& peers, std::size_t bytes, int rounds) {
    // So many that no host waits within a batch; the first of each only lets the ranks meet.
    constexpr std::size_t rounds_of_batch = Peers::max_ahead / 4;
    const int rank = peers.rank().rank();
    peers.rank().barrier();  // nothing is made for a stream while another rank's kernel waits
    Stream stream;
    ArenaBuffer<unsigned char> data = peers.allocate<unsigned char>(bytes);
    std::vector<Event> marks(rounds_of_batch + 1);
    Gate gate(peers.rank());
    if (rank > 1)
        return {bytes, 0};
    std::vector<double> halves;
    while (halves.size() < static_cast<std::size_t>(rounds)) {
        gate.close(stream);  // a GPU is faster than its host: it begins when all is enqueued
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
        gate.open();
        peers.synchronize(stream);
        for (std::size_t i = 1; i < rounds_of_batch; i++)
            halves.push_back(marks[i + 1].seconds_since(marks[i]) / 2);
    }
    return {bytes, median(halves)};
}

CostModel fit_cost(std::span<const MessageTime> times) {
    const std::size_t third = times.size() / 3;
    if (third == 0)
        throw std::invalid_argument("alpha and beta need three points: measure more sizes");
    std::vector<double> alphas, betas;
    for (const MessageTime& time : times.first(third))
        alphas.push_back(time.seconds);
    const double alpha = median(alphas);
    for (const MessageTime& time : times.last(third))
        betas.push_back((time.seconds - alpha) / static_cast<double>(time.bytes));
    return {alpha, std::max(0.0, median(betas))};
}

}  // namespace ddp
