#pragma once
// A rank of the book inside of another program's process, PyTorch's: a thread of its own, which
// carries out one call after the other. Its data may lie anywhere in that process:
//
//     PyTorch's thread             the rank's thread                        the other ranks'
//     threads all_reduce(tensor) ─ call ─▶ a slice of the tensor ─▶ the arena
//        │ goes on                 all-reduce of the arena's slice  ◀─────▶ the same
//        ▼                         the tensor's slice ◀─ the arena
//     wait() ◀───────── done ───── ... until no slice is left
//
// No header of CUDA is seen here, so that PyTorch's can be.
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ddp {

class GuestRank {
  public:
    // Meets the other ranks. `all_gather`, which every rank calls once, returns the texts of all.
    // Throws std::runtime_error if they are on several nodes, or do not come within `timeout_s`,
    // which limits every later wait as well (0: no limit).
    using AllGather = std::function<std::vector<std::string>(const std::string& text)>;
    GuestRank(int rank, int world_size, double timeout_s, const AllGather& all_gather);
    // Leaves, if leave() has not been called.
    ~GuestRank();
    GuestRank(const GuestRank&) = delete;
    GuestRank& operator=(const GuestRank&) = delete;

    // Called by the rank's thread when a call is over: with nullptr, or with what has gone wrong.
    using Done = std::function<void(std::exception_ptr)>;

    // Each enqueues a call and returns; all ranks make the same calls in the same order. The memory
    // must stay until the call is done. They throw std::runtime_error if an earlier call has failed
    // or this rank has left. `type` is "float", "double", "half", "bfloat16" or "int", and `op`
    // "sum", "average", "maximum" or "minimum".
    void all_reduce(void* data, std::size_t count, const std::string& type, const std::string& op,
                    Done done);
    void reduce_scatter(std::vector<const void*> inputs, void* output, std::size_t count,
                        const std::string& type, const std::string& op, Done done);
    void broadcast(void* data, std::size_t bytes, int root, Done done);
    void all_gather(const void* input, std::vector<void*> outputs, std::size_t bytes, Done done);
    void barrier(Done done);

    // Returns whether floats are summed by the reader's all-reduce (own_all_reduce.hpp).
    static bool sums_by_the_readers();

    // Waits until all ranks leave; then nothing can be enqueued any more. Does not throw.
    void leave();
    // Ends the job of all ranks, which learn `why`.
    void fail(const std::string& why);

  private:
    class Desk;
    struct Call;
    void enqueue(Call call);
    void live(double timeout_s, const AllGather& all_gather);

    struct Shared;
    std::unique_ptr<Shared> shared_;
};

}  // namespace ddp
