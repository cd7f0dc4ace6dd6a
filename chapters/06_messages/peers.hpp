#pragma once
// A rank's access to the device memory of other ranks, and the two operations from which all others
// can be made: send and receive.
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "05_ranks/rank.hpp"
#include "06_messages/call.hpp"
#include "06_messages/shared_arena.hpp"
#include "06_messages/support/error_report.hpp"

namespace ddp {

// The receiver's kernel copies data straight from the sender's arena to its destination: one copy,
// and no buffer between. So the data of a send must lie in the arena.
//
// Operations are enqueued on a stream; the host goes on. If one fails (the peer does not come in
// time, or does something else), the run fails: every waiting kernel of every rank ends its wait,
// and the first call that can report it, synchronize() or an exchange of the Rank, throws.
class Peers : public Abortable {
  public:
    // All ranks of the run make theirs together, each with an arena of `arena_bytes` for its data
    // on the current device. `rank` must outlive this object. `timeout_s` limits every wait of a
    // kernel (0: no limit), `link` is the simulated link between these peers; both are the job's
    // unless given. Throws OptionError if kernels of the ranks could not run at the same time,
    // and std::runtime_error if they do not.
    //
    // `ranks`: the numbers of those that share memory here, this one among them; all of the job
    // unless given. They give the same. Throws OptionError if one is where kernels cannot reach.
    Peers(Rank& rank, std::size_t arena_bytes, std::optional<double> timeout_s = std::nullopt,
          std::optional<LinkSpeed> link = std::nullopt, std::vector<int> ranks = {});
    // Waits for what this rank has enqueued; ends it early if an exception is under way.
    ~Peers() override;
    Peers(const Peers&) = delete;
    Peers& operator=(const Peers&) = delete;

    // Returns an array of `size` elements in this rank's arena, not initialised. Throws
    // std::runtime_error if there is no room.
    template <class T>
    ArenaBuffer<T> allocate(std::size_t size) {
        return ArenaBuffer<T>(arena_, size);
    }

    // Sends `count` elements to rank `to`, or receives them from rank `from`. The k-th send from
    // a to b is received by the k-th receive of b from a; count and type must be the same. A send
    // is over, and its data may be overwritten, when the receiver has the data: two ranks that both
    // send first wait for each other until the time-out. `data` of a send must lie in this rank's
    // arena; that of a receive may be any device memory, and is not touched if count is 0. `name`
    // is for messages. Throws std::invalid_argument for a rank that does not exist or data that
    // does not lie in the arena.
    template <class T>
    void send(const T* data, std::size_t count, int to, Stream& stream,
              const std::string& name = "") {
        send({.operation = "send",
              .kind = OperationKind::send,
              .type = element_type<T>(),
              .count = count,
              .input = data,
              .outputs = 0,
              .name = name,
              .peer = to},
             stream);
    }
    template <class T>
    void receive(T* data, std::size_t count, int from, Stream& stream,
                 const std::string& name = "") {
        receive({.operation = "receive",
                 .kind = OperationKind::receive,
                 .type = element_type<T>(),
                 .count = count,
                 .inputs = 0,
                 .output = data,
                 .name = name,
                 .peer = from},
                stream);
    }
    void send(const Call& call, Stream& stream);
    void receive(const Call& call, Stream& stream);

    // Waits until everything on `stream` is done. Throws what has gone wrong with it, or RunFailed
    // if the run has failed elsewhere.
    void synchronize(Stream& stream);

    Rank& rank() { return rank_; }
    // Returns the place of rank `number` among those that share memory, as view() counts them; -1
    // if it is none of them.
    int index_of(int number) const;
    // Returns the arena from which allocate() takes.
    const std::shared_ptr<SharedArena>& arena() const { return arena_; }

    // ---- For operations that later chapters add

    const PeersView& view() const { return view_; }
    // Returns the record of this rank's next operation, with the place of its input, which must lie
    // in the arena or be null.
    OperationRecord next_record(const Call& call);
    // Notes that kernels which use view() were launched on `stream`: the destructor waits for them.
    // Waits now and then, so that the host is at most max_ahead such launches ahead of the stream.
    // (On a CPU the two may share a core, and each wake-up of the host stops a kernel for a while.)
    void enqueued(Stream& stream);
    static constexpr std::uint64_t max_ahead = kernels_run_on_cpu ? 96 : 16;
    // Makes `stream` wait for what was noted last on `other`. Throws std::logic_error if nothing
    // was.
    void wait_for_last_on(cudaStream_t other, Stream& stream);
    // Calls enqueue(), which has all its operations captured: a graph runs them later.
    void capture(const std::function<void()>& enqueue);
    bool is_capturing() const { return is_capturing_; }

    // The host's state of such operations: one object, which the first call makes as T(*this), and
    // some memory of the arena for it.
    struct Extension {
        virtual ~Extension() = default;
    };
    template <class T>
    T& extension() {
        if (extension_ == nullptr)
            extension_ = std::make_unique<T>(*this);
        return static_cast<T&>(*extension_);
    }
    static constexpr std::size_t extension_bytes = kernels_run_on_cpu ? 512 << 10 : 2 << 20;
    // Bytes that it takes of a rank's device, next to those for allocate().
    static constexpr std::size_t own_bytes =
        sizeof(ControlBlock) + extension_bytes + 2 * SharedArena::unit;
    std::byte* extension_memory() { return extension_memory_.data(); }

  private:
    void stop() noexcept override;
    std::string error() override;
    Wait wait_when_stopped() override;

    void wait_for_problem();
    void exchange_arenas();
    int require_peer(int number, const std::string& operation) const;
    // Returns on how many streams kernels run or wait.
    std::size_t streams_in_use() const;
    // Notes for a time-out's message which CUDA call this host is in.
    void note(HostCall call);

    Rank& rank_;
    const std::vector<int> ranks_;  // that share memory, by number
    const double timeout_s_;
    std::shared_ptr<SharedArena> arena_;
    std::shared_ptr<PinnedBuffer<DeviceErrorReport>> error_report_;
    ArenaBuffer<std::byte> extension_memory_;
    PeersView view_;
    std::vector<void*> opened_;  // other processes' arenas
    // The work that was enqueued on a stream.
    struct Enqueued {
        Event last{EventFor::order};  // the end of it
        Event ends[2];                // of groups, in turns
        std::uint64_t launches = 0;
    };
    std::map<cudaStream_t, Enqueued> enqueued_;
    bool is_capturing_ = false;
    Event captured_{EventFor::order};  // the end of the last captured operation, in its graph
    const int exceptions_ = std::uncaught_exceptions();
    std::uint64_t operations_ = 0;
    std::uint64_t sends_[max_peers] = {}, receives_[max_peers] = {};  // enqueued, by peer
    std::unique_ptr<Extension> extension_;
};

// ---- The launch shape of a kernel that waits for those of other ranks

// The threads of a block that copies or adds. A thread may then have 128 registers.
inline constexpr unsigned int max_copy_threads = 512;

// Returns how many blocks a kernel of each of the `ranks` that share a GPU may have, if it waits
// for the others' kernels. A rank may have two such kernels at a time, one that sends and one that
// receives. All of them must run at the same time, and a half of the GPU is left to what the ranks
// compute.
unsigned int blocks_of_rank(int ranks);

// Returns the launch shape of a kernel that moves `bytes` at a time, where so many `ranks` share a
// device: blocks enough to keep a GPU's memory busy, few enough for the kernels of all ranks to run
// at the same time. On a CPU shape_on_cpu.
LaunchShape shape_of_transfer(std::size_t bytes, int ranks);
// Returns the same for a collective of these peers: one shape on every rank, if the devices are of
// one kind. Over the simulated link one block makes each transfer.
LaunchShape shape_of_transfer(const Peers& peers, std::size_t bytes);

}  // namespace ddp
