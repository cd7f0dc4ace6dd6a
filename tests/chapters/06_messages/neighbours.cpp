#include "tests/chapters/06_messages/neighbours.hpp"

#include <cstdint>

namespace ddp::test {
namespace {

template <class T>
T value(int rank, int round, std::size_t i) {
    return static_cast<T>(rank * 1'000'003 + round * 7919 + static_cast<int>(i));
}

template <class T>
int count_wrong(Peers& peers, int round, std::size_t count, std::size_t shift) {
    Rank& rank = peers.rank();
    const int right = (rank.rank() + 1) % rank.world_size();
    const int left = (rank.rank() + rank.world_size() - 1) % rank.world_size();
    std::vector<T> host(count + shift + 1);
    for (std::size_t i = 0; i < count; i++)
        host[i + shift] = value<T>(rank.rank(), round, i);
    ArenaBuffer<T> source = peers.allocate<T>(host.size());
    ArenaBuffer<T> target = peers.allocate<T>(host.size());
    source.copy_from(host);
    target.copy_from(std::vector<T>(host.size(), T(42)));
    Stream out, in;
    peers.send(source.data() + shift, count, right, out);
    peers.receive(target.data() + shift, count, left, in);
    peers.synchronize(out);
    peers.synchronize(in);
    const std::vector<T> arrived = target.to_host_now();
    int wrong = arrived[count + shift] != T(42);
    for (std::size_t i = 0; i < count + shift; i++)
        wrong += arrived[i] != (i < shift ? T(42) : value<T>(left, round, i - shift));
    return wrong;
}

}  // namespace

int count_wrong_at_neighbours(Rank& rank) {
    rank.select_device();
    Peers peers(rank, 16 << 20);
    int wrong = 0, round = 0;
    for (std::size_t count : {0, 1, 2, 3, 31, 1009, 65'537, 1'000'003})
        for (std::size_t shift : {0, 1, 4}) {
            wrong += count_wrong<int>(peers, ++round, count, shift);
            wrong += count_wrong<unsigned char>(peers, ++round, count, shift);
        }
    return wrong;
}

}  // namespace ddp::test
