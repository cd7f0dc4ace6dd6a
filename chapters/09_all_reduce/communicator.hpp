#pragma once
// The communicator: NCCL's operations on a stream, over one of three transports: this book's native
// kernels, MPI, or NCCL.
//
//     std::unique_ptr<Communicator> communicator = make_native_communicator(rank, bytes);
//     ArenaBuffer<float> gradients = communicator->allocate<float>(n);
//     communicator->all_reduce(gradients.data(), gradients.data(), n, ReduceOp::average, stream);
//
// A communicator of some ranks only has a Group of them (PyTorch's new_group):
//
//     make_native_communicator(rank, bytes, {.group = Group({0, 2, 4})});
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "02_kernels/reduction.hpp"
#include "05_ranks/rank.hpp"
#include "06_messages/call.hpp"
#include "06_messages/shared_arena.hpp"
#include "09_all_reduce/support/group.hpp"

namespace ddp {

class Peers;

// Every rank makes the same calls in the same order; if two calls differ, the error names both. All
// calls are asynchronous to the host: they are enqueued on `stream`, after the work that writes
// their input and before the work that reads their output. Data lies in memory from allocate().
// `name` is for messages. Over MPI, calls are served one after the other, whatever their streams:
// the two ends of a message must be the next call of both ranks, so in a ring shift rank 0 sends
// first and the others receive first. The native transport serves each stream separately.
//
// Calls throw std::invalid_argument for a rank that does not exist or memory that is not from
// allocate(). Errors that happen later are thrown by synchronize(), or by the next call of the
// Rank. After that the communicator can't be used any more; the next run makes a new one.
class Communicator {
  public:
    virtual ~Communicator() = default;
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    Rank& rank() { return rank_; }
    // The ranks that calls reach. The root or peer of a call is an index into this group; messages
    // give a rank's number in the job.
    const Group& group() const { return group_; }
    int world_size() const { return group_.size(); }
    int index() const { return index_; }   // of this rank
    virtual std::string kind() const = 0;  // "native", "mpi", "nccl"
    // Returns what its collectives run over, if a graph can hold them; otherwise nullptr.
    virtual Peers* capturable() { return nullptr; }

    // Allocates an array that all calls accept. It must not outlive the communicator.
    template <class T>
    ArenaBuffer<T> allocate(std::size_t size) {
        return ArenaBuffer<T>(arena(), size);
    }

    // `data` becomes the root's data on every rank.
    template <class T>
    void broadcast(T* data, std::size_t count, int root, Stream& stream,
                   const std::string& name = "") {
        require_rank(root, "broadcast from");
        Call call = call_of(OperationKind::broadcast, data, data, count, name);
        call.peer = group_.rank(root);
        enqueue(call, stream);
    }
    // The root's `output` becomes the sum (or average, maximum, minimum) of all ranks' `input`. The
    // other ranks' output is ignored.
    template <class T>
    void reduce(const T* input, T* output, std::size_t count, ReduceOp op, int root, Stream& stream,
                const std::string& name = "") {
        require_rank(root, "reduce to");
        Call call = call_of(OperationKind::reduce, input, output, count, name);
        call.outputs = index_ == root ? 1 : 0;
        call.peer = group_.rank(root);
        call.op = op;
        enqueue(call, stream);
    }
    // Gives every rank the same result. `input` and `output` may be the same array.
    template <class T>
    void all_reduce(const T* input, T* output, std::size_t count, ReduceOp op, Stream& stream,
                    const std::string& name = "") {
        Call call = call_of(OperationKind::all_reduce, input, output, count, name);
        call.op = op;
        enqueue(call, stream);
    }
    // `input` has `count` elements for each rank; `output` becomes the sum of this rank's elements.
    // `output` may be their place in `input`.
    template <class T>
    void reduce_scatter(const T* input, T* output, std::size_t count, ReduceOp op, Stream& stream,
                        const std::string& name = "") {
        Call call = call_of(OperationKind::reduce_scatter, input, output, count, name);
        call.inputs = static_cast<std::size_t>(world_size());
        call.op = op;
        enqueue(call, stream);
    }
    // `output` becomes the `count` elements of every rank, by rank. `input` may be this rank's
    // place in `output`.
    template <class T>
    void all_gather(const T* input, T* output, std::size_t count, Stream& stream,
                    const std::string& name = "") {
        Call call = call_of(OperationKind::all_gather, input, output, count, name);
        call.outputs = static_cast<std::size_t>(world_size());
        enqueue(call, stream);
    }
    // The k-th send from a to b is received by the k-th receive of b from a. A send is over when
    // the receiver has the data.
    template <class T>
    void send(const T* data, std::size_t count, int to, Stream& stream,
              const std::string& name = "") {
        require_rank(to, "send to");
        Call call = call_of<T>(OperationKind::send, data, nullptr, count, name);
        call.outputs = 0;
        call.peer = group_.rank(to);
        enqueue(call, stream);
    }
    template <class T>
    void receive(T* data, std::size_t count, int from, Stream& stream,
                 const std::string& name = "") {
        require_rank(from, "receive from");
        Call call = call_of<T>(OperationKind::receive, nullptr, data, count, name);
        call.inputs = 0;
        call.peer = group_.rank(from);
        enqueue(call, stream);
    }

    // Waits until everything on `stream` is done. Throws the error if that has failed, or RunFailed
    // if the run has failed elsewhere.
    virtual void synchronize(Stream& stream) = 0;

  protected:
    explicit Communicator(Rank& rank) : Communicator(rank, Group::all(rank.job())) {}
    Communicator(Rank& rank, Group group)
        : rank_(rank), group_(std::move(group)), index_(group_.index_of(rank.rank())) {}

    // Returns the index of a call's root, or of the rank at the other end of a message.
    int peer_of(const Call& call) const { return group_.index_of(call.peer); }

  private:
    virtual const std::shared_ptr<SharedArena>& arena() = 0;
    // Enqueues a call of any kind but `other`: the one door to a transport.
    virtual void enqueue(const Call& call, Stream& stream) = 0;

    template <class T>
    static Call call_of(OperationKind kind, const T* input, T* output, std::size_t count,
                        const std::string& name) {
        return {.operation = name_of(kind),
                .kind = kind,
                .type = element_type<T>(),
                .count = count,
                .input = input,
                .output = output,
                .name = name};
    }
    void require_rank(int rank, const std::string& what) const;

    Rank& rank_;
    const Group group_;
    const int index_;
};

// The choices of a communicator that differ from the usual ones.
struct CommunicatorOptions {
    std::optional<Group> group = std::nullopt;       // all ranks unless given
    std::optional<double> timeout_s = std::nullopt;  // limits every wait of a kernel (0: no limit)
    std::optional<LinkSpeed> link = std::nullopt;    // simulated, between these ranks
};

// Make a communicator with `arena_bytes` of device memory for allocate(); each has its own file.
// All ranks of the job call the same function together, each with its group; a rank that is in no
// group passes a group of itself. They throw OptionError, in a sentence, if that library is not
// available here, and std::invalid_argument if the members of a group pass different groups.
//
// The native communicator needs ranks of one node. Its time-out and link are the job's unless
// given.
//
// MPI's serves its calls in the order in which they were enqueued, whatever their streams. If one
// rank sends on one stream and receives on another, and its peer does these in the opposite order,
// both wait forever: use one communicator per stream.
std::unique_ptr<Communicator> make_native_communicator(Rank& rank, std::size_t arena_bytes,
                                                       const CommunicatorOptions& options = {});
std::unique_ptr<Communicator> make_mpi_communicator(Rank& rank, std::size_t arena_bytes,
                                                    std::optional<Group> group = std::nullopt);
std::unique_ptr<Communicator> make_nccl_communicator(Rank& rank, std::size_t arena_bytes,
                                                     std::optional<Group> group = std::nullopt);

}  // namespace ddp
