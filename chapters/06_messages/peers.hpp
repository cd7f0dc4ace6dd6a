#pragma once
// A rank's way to the device memory of the other ranks of its host, and the two operations from
// which all others can be made: send and receive.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "05_ranks/rank.hpp"
#include "06_messages/control.hpp"
#include "06_messages/shared_arena.hpp"

namespace ddp {

// What records and messages call a type of elements.
template <class T>
std::string type_name() {
    if constexpr (std::is_same_v<T, float>)
        return "float";
    else if constexpr (std::is_same_v<T, double>)
        return "double";
    else if constexpr (std::is_same_v<T, int>)
        return "int";
    else if constexpr (std::is_same_v<T, __half>)
        return "half";
    else if constexpr (std::is_same_v<T, __nv_bfloat16>)
        return "bfloat16";
    else
        return std::to_string(sizeof(T)) + "-byte type";
}

// What all ranks are about to do together.
struct CollectiveCall {
    std::string operation;
    std::size_t count = 0;  // elements, as the messages name them
    std::string type;
    std::string name;
    // What other ranks read, and what they or we write: both in this rank's arena.
    const void* input = nullptr;
    std::size_t input_bytes = 0;
    void* output = nullptr;
    std::size_t output_bytes = 0;
    int root = -1;  // of an operation that has one
};

// Data is sent straight from the sender's arena to wherever the receiver wants it, by the
// receiver's kernel: one copy, and none on the way. So what is sent must lie in the arena.
//
// Operations are enqueued on a stream; the host goes on. If one fails (the peer does not come in
// time, or does something else), the run fails: every kernel of every rank that waits ends its
// wait, and the first call that asks, synchronize() or an exchange of the Rank, throws.
class Peers : private Abortable {
  public:
    // All ranks of the run make theirs together, each with an arena of `arena_bytes` for its data
    // on the current device. `rank` must outlive it. At its end what this rank has enqueued is
    // awaited, or cut short where the end is an exception's doing. Throws OptionError where kernels
    // of the ranks could not run at the same time. `timeout_s` is of every wait of a kernel (0: for
    // ever), `link` the simulated link between these peers; both are the job's unless given.
    Peers(Rank& rank, std::size_t arena_bytes, std::optional<double> timeout_s = std::nullopt,
          std::optional<LinkSpeed> link = std::nullopt);
    ~Peers() override;
    Peers(const Peers&) = delete;
    Peers& operator=(const Peers&) = delete;

    // An array in this rank's arena. Throws std::runtime_error if there is no room.
    template <class T>
    ArenaBuffer<T> allocate(std::size_t size) {
        return ArenaBuffer<T>(arena_, size);
    }

    // Sends `count` elements to rank `to`, or receives as many from rank `from`. The k-th send from
    // a to b meets the k-th receive of b from a; count and type must be the same. A send is over,
    // and its data may be overwritten, when the receiver has it: two ranks that both send first
    // wait for each other for ever. `data` of a send must lie in this rank's arena, that of a
    // receive may be any device memory; nothing is done to it if count is 0. `name` is for
    // messages. Throws std::invalid_argument for a rank that is not there or data that is not in
    // the arena.
    template <class T>
    void send(const T* data, std::size_t count, int to, Stream& stream,
              const std::string& name = "") {
        send_bytes(data, count, sizeof(T), type_name<T>(), to, stream, name);
    }
    template <class T>
    void receive(T* data, std::size_t count, int from, Stream& stream,
                 const std::string& name = "") {
        receive_bytes(data, count, sizeof(T), type_name<T>(), from, stream, name);
    }

    // The same for elements whose type is known to the caller only.
    void send_bytes(const void* data, std::size_t count, std::size_t element_bytes,
                    const std::string& type, int to, Stream& stream, const std::string& name);
    void receive_bytes(void* data, std::size_t count, std::size_t element_bytes,
                       const std::string& type, int from, Stream& stream, const std::string& name);

    // Until everything on `stream` is done. Throws what has gone wrong with it, or RunFailed if the
    // run has failed elsewhere.
    void synchronize(Stream& stream);

    Rank& rank() { return rank_; }
    // Where allocate() takes from.
    const std::shared_ptr<SharedArena>& arena() const { return arena_; }

    // ---- For other operations over these peers, as later chapters add them.

    const PeersView& view() const { return view_; }
    // The record of this rank's next operation. `data` must lie in the arena, or be null.
    OperationRecord next_record(const std::string& operation, const void* data, std::size_t count,
                                std::size_t element_bytes, const std::string& type,
                                const std::string& name);
    // The argument for the kernels of the next operation of all ranks, which every rank must begin
    // in the same order. What is enqueued on `stream` from now on waits for the one before it.
    Collective next_collective(const CollectiveCall& call, Stream& stream);
    // A piece of the arena for the next operation of all ranks, of most_staged bytes. The one after
    // the next gets the same.
    std::byte* staging() { return staging_.data() + (collectives_ + 1) % 2 * most_staged; }
    static constexpr std::size_t most_staged = kernels_run_on_cpu ? 256 << 10 : 1 << 20;
    // Kernels that use view() were launched on `stream`: they are awaited before the peers end.
    void enqueued(Stream& stream);

  private:
    void stop() noexcept override;
    std::string error() override;

    void wait_for_problem();
    void exchange_arenas();
    std::uint64_t offset_of(const void* data, std::size_t bytes,
                            const std::string& operation) const;
    void require_peer(int peer, const std::string& operation) const;

    Rank& rank_;
    const double timeout_s_;
    std::shared_ptr<SharedArena> arena_;
    std::shared_ptr<PinnedBuffer<DeviceErrorReport>> error_report_;
    ArenaBuffer<std::byte> staging_;
    PeersView view_;
    std::vector<void*> opened_;           // other processes' arenas
    std::map<cudaStream_t, Event> last_;  // where each stream has what was enqueued last
    const int exceptions_ = std::uncaught_exceptions();
    std::uint64_t operations_ = 0, collectives_ = 0;
    cudaStream_t collective_stream_ = nullptr;                          // of the last of them
    std::uint64_t sends_[most_peers] = {}, receives_[most_peers] = {};  // enqueued, by peer
};

}  // namespace ddp
