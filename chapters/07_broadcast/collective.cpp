#include "07_broadcast/collective.hpp"

#include <cstring>
#include <stdexcept>

namespace ddp {
namespace {

// Returns a number for all that ranks must call alike. (FNV-1a, by words of 64 bits: two different
// calls will not have the same number by chance.)
std::uint64_t fingerprint_of(const OperationRecord& record) {
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto add = [&hash](const auto& field) {
        std::uint64_t words[sizeof field / sizeof(std::uint64_t)];
        static_assert(sizeof words == sizeof field);
        std::memcpy(words, &field, sizeof field);
        for (const std::uint64_t word : words)
            hash = (hash ^ word) * 0x100000001b3;
    };
    add(record.count);
    add(record.peer);
    add(record.operation);
    add(record.type);
    add(record.name);
    return hash;
}

}  // namespace

Collective Collectives::next(const Call& call, Stream& stream) {
    Collective collective{peers_.view(), peers_.next_record(call), ++collectives_};
    if (peers_.is_capturing())
        collective.number = 0;
    collective.record.result = output_offset(*peers_.arena(), call);
    collective.fingerprint = fingerprint_of(collective.record);
    follow_on(stream);
    return collective;
}

// Collectives use the same flags: one after the other, on whatever streams.
void Collectives::follow_on(Stream& stream) {
    if (stream_ != nullptr && stream_ != stream)
        peers_.wait_for_last_on(stream_, stream);
    stream_ = stream;
}

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
