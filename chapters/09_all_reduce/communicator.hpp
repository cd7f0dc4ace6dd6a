#pragma once
// What a program says to all ranks: NCCL's vocabulary, on a stream, whoever carries the data. Three
// do: this book's own kernels, MPI and NCCL.
//
//     std::unique_ptr<Communicator> communicator = make_communicator("native", rank, bytes);
//     ArenaBuffer<float> gradients = communicator->allocate<float>(n);
//     communicator->all_reduce(gradients.data(), gradients.data(), n, ReduceOp::average, stream);
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "02_kernels/reduction.hpp"
#include "05_ranks/rank.hpp"
#include "06_messages/shared_arena.hpp"
#include "09_all_reduce/element_type.hpp"

namespace ddp {

// `count` elements, read at `input` and written at `output`.
struct Elements {
    ElementType type;
    std::size_t count;
    const void* input;
    void* output;

    // More elements than memory has bytes are refused as data that is not in the arena, too.
    std::size_t bytes() const {
        return std::min(count, SIZE_MAX / bytes_of(type)) * bytes_of(type);
    }
};

// Every rank makes the same calls in the same order, or it is told which one differs. All calls are
// asynchronous to the host: they are enqueued on `stream`, behind what writes their input and
// before what reads their output. Data lies in memory from allocate(). `name` is for messages.
//
// Calls throw std::invalid_argument for what makes no sense (a rank that is not there, memory of
// somebody else), and what goes wrong later is thrown by synchronize(), or by the next call of the
// Rank: then the communicator is of no more use, and the next run makes another.
class Communicator {
  public:
    virtual ~Communicator() = default;
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    Rank& rank() { return rank_; }
    int world_size() const { return rank_.world_size(); }
    virtual std::string kind() const = 0;  // "native", "mpi", "nccl"

    // An array that all calls take, for as long as the communicator lives.
    template <class T>
    ArenaBuffer<T> allocate(std::size_t size) {
        return ArenaBuffer<T>(arena(), size);
    }

    // The root's data, on every rank.
    template <class T>
    void broadcast(T* data, std::size_t count, int root, Stream& stream,
                   const std::string& name = "") {
        require_rank(root, "broadcast from");
        broadcast_elements({element_type<T>(), count, data, data}, root, stream, name);
    }
    // The sum (or average, ...) of all ranks' `input`, in the root's `output`; the others' output
    // is not looked at.
    template <class T>
    void reduce(const T* input, T* output, std::size_t count, ReduceOp op, int root, Stream& stream,
                const std::string& name = "") {
        require_rank(root, "reduce to");
        reduce_elements({element_type<T>(), count, input, output}, op, root, stream, name);
    }
    // ... in everyone's. `input` and `output` may be the same.
    template <class T>
    void all_reduce(const T* input, T* output, std::size_t count, ReduceOp op, Stream& stream,
                    const std::string& name = "") {
        all_reduce_elements({element_type<T>(), count, input, output}, op, stream, name);
    }
    // `input` has `count` elements for each rank; `output` becomes the sum of those for this one.
    // It may be where they are in `input`.
    template <class T>
    void reduce_scatter(const T* input, T* output, std::size_t count, ReduceOp op, Stream& stream,
                        const std::string& name = "") {
        reduce_scatter_elements({element_type<T>(), count, input, output}, op, stream, name);
    }
    // `output` becomes the `count` elements of every rank, by rank. `input` may be where this
    // rank's go in `output`.
    template <class T>
    void all_gather(const T* input, T* output, std::size_t count, Stream& stream,
                    const std::string& name = "") {
        all_gather_elements({element_type<T>(), count, input, output}, stream, name);
    }
    // The k-th send from a to b meets the k-th receive of b from a. A send is over when the
    // receiver has the data.
    template <class T>
    void send(const T* data, std::size_t count, int to, Stream& stream,
              const std::string& name = "") {
        require_rank(to, "send to");
        send_elements({element_type<T>(), count, data, nullptr}, to, stream, name);
    }
    template <class T>
    void receive(T* data, std::size_t count, int from, Stream& stream,
                 const std::string& name = "") {
        require_rank(from, "receive from");
        receive_elements({element_type<T>(), count, nullptr, data}, from, stream, name);
    }

    // Until everything on `stream` is done. Throws what has gone wrong with it, or RunFailed if the
    // run has failed elsewhere.
    virtual void synchronize(Stream& stream) = 0;

  protected:
    explicit Communicator(Rank& rank) : rank_(rank) {}

  private:
    virtual const std::shared_ptr<SharedArena>& arena() = 0;
    virtual void broadcast_elements(const Elements& elements, int root, Stream& stream,
                                    const std::string& name) = 0;
    virtual void reduce_elements(const Elements& elements, ReduceOp op, int root, Stream& stream,
                                 const std::string& name) = 0;
    virtual void all_reduce_elements(const Elements& elements, ReduceOp op, Stream& stream,
                                     const std::string& name) = 0;
    virtual void reduce_scatter_elements(const Elements& elements, ReduceOp op, Stream& stream,
                                         const std::string& name) = 0;
    virtual void all_gather_elements(const Elements& elements, Stream& stream,
                                     const std::string& name) = 0;
    virtual void send_elements(const Elements& elements, int to, Stream& stream,
                               const std::string& name) = 0;
    virtual void receive_elements(const Elements& elements, int from, Stream& stream,
                                  const std::string& name) = 0;
    void require_rank(int rank, const std::string& what) const;

    Rank& rank_;
};

// "native": this book's kernels; "mpi"; "nccl". With `arena_bytes` of device memory for allocate().
// All ranks call it together. Throws OptionError, in a sentence, where there is no such thing here.
std::unique_ptr<Communicator> make_communicator(const std::string& kind, Rank& rank,
                                                std::size_t arena_bytes);

// The makers behind make_communicator, each in a file of its own. `timeout_s` is of every wait of a
// kernel (0: for ever), the job's unless given; `link`, a simulated link between ranks of one host,
// is also the job's unless given.
std::unique_ptr<Communicator> make_native_communicator(
    Rank& rank, std::size_t arena_bytes, std::optional<double> timeout_s = std::nullopt,
    std::optional<LinkSpeed> link = std::nullopt);
std::unique_ptr<Communicator> make_mpi_communicator(Rank& rank, std::size_t arena_bytes);
std::unique_ptr<Communicator> make_nccl_communicator(Rank& rank, std::size_t arena_bytes);

}  // namespace ddp
