#pragma once
// The contract of the exercise barrier: no rank goes on before every rank has come.
#include <functional>
#include <memory>
#include <string>

#include "exercises/not_implemented.hpp"

namespace ddp {

// A dictionary that all ranks share, as torchrun keeps one for its job. A key that has been set
// stays.
struct Store {
    std::function<void(const std::string& key, const std::string& value)> set;
    std::function<std::string(const std::string& key)> get;  // waits until a rank has set the key
};

// One rank's end of a barrier.
//
//     rank 0 calls wait() at 10:00, rank 1 at 10:07, rank 2 at 10:05: all return at 10:07
//
// Task one_call: it is called once.
// Task again: it is called any number of times.
// Task rounds: in one call, a rank of N sets at most ceil(log2 N) keys, and gets as many.
//
// You may call: store.set(), store.get().
// The check also tries: one rank, numbers that are no power of two, each rank as the last to come.
class Barrier {
  public:
    virtual ~Barrier() = default;
    virtual void wait() = 0;
};

// Each rank calls it once, with its number (from 0) and the number of ranks.
std::unique_ptr<Barrier> make_barrier(const Store& store, int rank, int world_size);

}  // namespace ddp
