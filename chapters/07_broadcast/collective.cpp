#include "07_broadcast/collective.hpp"

#include <stdexcept>

namespace ddp {

std::uint64_t Collectives::capture(const std::function<void()>& enqueue) {
    const std::uint64_t before = std::exchange(collectives_, 0);
    const cudaStream_t last_on = std::exchange(stream_, nullptr);  // the launch waits for it
    peers_.capture(enqueue);
    stream_ = last_on;
    return std::exchange(collectives_, before);
}

void Collectives::launch_captured(std::uint64_t captured, Stream& stream,
                                  const std::function<void()>& launch) {
    follow_on(stream);
    launch();
    peers_.enqueued(stream);
    collectives_ += captured;
}

int require_root(const Peers& peers, const Call& call) {
    const int root = peers.index_of(call.peer);
    if (root < 0)
        throw std::invalid_argument(call.title() + ": there is no rank " +
                                    std::to_string(call.peer) + "; the root is one of 0 to " +
                                    std::to_string(peers.view().world_size - 1));
    return root;
}

}  // namespace ddp
