#pragma once
#include <memory>

#include "05_ranks/rank.hpp"
#include "common/gpu/buffer.hpp"
#include "common/gpu/stream.hpp"

namespace ddp {

// Holds a stream back until the host has enqueued all that is to be timed on it.
class Gate {
  public:
    explicit Gate(Rank& rank);  // all ranks make one together
    // Makes what follows on `stream` wait for open(), or for a second if that never comes.
    void close(Stream& stream);
    void open();

  private:
    const std::shared_ptr<PinnedBuffer<unsigned int>> is_open_;
};

}  // namespace ddp
