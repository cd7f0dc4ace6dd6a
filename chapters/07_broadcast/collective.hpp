#pragma once
// Operations of all ranks (collectives): what ranks write down for each other beside the records of
// 06_messages, and the host's side of a call. (collective.cuh has what kernels do with it.)
//
//     Call              what the program calls
//      │ launch_collective adds its numbers, and its places in the arena
//      ▼
//     OperationRecord   in this rank's block; all ranks can read it
//      │ the kernel posts a cache line of it: numbers and places
//      ▼
//     PostedCall        in every rank's block
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "06_messages/peers.hpp"

namespace ddp {

// The post of a rank to each rank of its node when it begins a collective: all that a peer needs,
// in one cache line. The rest is in the rank's record, and is read if the calls differ.
struct alignas(64) PostedCall : BufferOffsets {
    std::uint64_t number = 0;  // of the collective, from 1; written last
    std::uint64_t fingerprint = 0;
};

// A rank's flags for collectives, in the room of its control block. [r] is written by rank r.
// Collectives n and n + 1 may be under way at the same time, so calls are kept for two of them:
// that of number n is in [n % 2].
struct CollectiveState {
    OperationRecord records[2];  // by this rank
    PostedCall posted_calls[max_peers][2];
    Flag posted[max_peers][max_blocks];        // steps whose data block b of rank r has posted
    Flag acknowledged[max_peers][max_blocks];  // steps whose data it has read from this rank
    std::uint64_t arrival_ns[max_peers];       // --link: when that data has arrived
    std::uint64_t link_ns[max_blocks];         // --link: when block b's last transfer arrived
    std::uint64_t ended;                       // number of its last collective that has ended
    unsigned int blocks;                       // blocks of this rank's kernel that have ended
};
static_assert(sizeof(CollectiveState) <= sizeof(ControlBlock::room));

// One collective, as its kernels get it: a parameter that no thread changes, so that all of them
// read the one copy (const __grid_constant__).
struct Collective {
    PeersView view;
    OperationRecord record;    // this rank's
    std::uint64_t number = 0;  // among the collectives: the same on every rank; 0 in a graph
};

// The host's state of the collectives over one Peers.
class Collectives final : public Peers::Extension {
  public:
    static Collectives& over(Peers& peers) { return peers.extension<Collectives>(); }

    explicit Collectives(Peers& peers) : peers_(peers) {}

    // Returns the argument for the kernel of this rank's next collective. All ranks begin the same
    // collectives in the same order. What is enqueued on `stream` from now on waits for the one
    // before. Throws std::invalid_argument if input or output do not lie in the arena.
    Collective next(const Call& call, Stream& stream) {
        Collective collective{peers_.view(), peers_.next_record(call)};
        collective.record.result = output_offset(*peers_.arena(), call);
        collectives_++;
        if (!peers_.is_capturing())
            collective.number = collectives_;
        follow_on(stream);
        return collective;
    }

    // Returns the staging area. Collective n has the half staging_half(n) of it, of max_staged
    // bytes (collective.cuh).
    std::byte* staging() { return peers_.extension_memory(); }
    static constexpr std::size_t max_staged = Peers::extension_bytes / 2;

    // Calls enqueue(), which has all its collectives captured, and returns how many these are.
    std::uint64_t capture(const std::function<void()>& enqueue);
    // Calls launch(), which launches a graph of `captured` collectives on `stream`. They are the
    // next ones.
    void launch_captured(std::uint64_t captured, Stream& stream,
                         const std::function<void()>& launch);

  private:
    // Collectives use the same flags: one after the other, on whatever streams.
    void follow_on(Stream& stream) {
        if (stream_ != nullptr && stream_ != stream)
            peers_.wait_for_last_on(stream_, stream);
        stream_ = stream;
    }

    Peers& peers_;
    std::uint64_t collectives_ = 0;
    cudaStream_t stream_ = nullptr;  // of the last of them
};

// Returns the root of `call`, as view() counts the ranks. Throws std::invalid_argument if there is
// no such rank.
int require_root(const Peers& peers, const Call& call);

// Launches a collective's kernel on `stream`, with a Collective as its first argument. Throws as
// Collectives::next does.
template <class... Parameters, class... Arguments>
void launch_collective(Peers& peers, const Call& call, Stream& stream, const LaunchShape& shape,
                       void (*kernel)(Collective, Parameters...), Arguments&&... arguments) {
    launch_cooperative(stream, shape, kernel, Collectives::over(peers).next(call, stream),
                       std::forward<Arguments>(arguments)...);
    peers.enqueued(stream);
}

}  // namespace ddp
