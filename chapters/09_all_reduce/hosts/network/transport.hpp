#pragma once
// A transport carries bytes from host to host.
#include <cstddef>
#include <memory>

#include "05_ranks/rank.hpp"

namespace ddp {

// A send or a receive that goes on by itself. Its memory must stay until it is done.
class Transfer {
  public:
    // A receive that is not done is given up; for a send it is too late.
    virtual ~Transfer() = default;
    // Never waits. Throws std::runtime_error for a wire that has broken.
    virtual bool is_done() = 0;
    // How many came, once a receive is done.
    virtual std::size_t bytes() const = 0;
};

// Between two ranks there are several channels. What goes along a channel arrives in order. Used by
// one thread at a time.
class Transport {
  public:
    virtual ~Transport() = default;
    // Done when the receiver has a place for it: `bytes` may be written again.
    virtual std::unique_ptr<Transfer> send(int to, int channel, const std::byte* data,
                                           std::size_t bytes) = 0;
    // For up to `most_bytes`.
    virtual std::unique_ptr<Transfer> receive(int from, int channel, std::byte* data,
                                              std::size_t most_bytes) = 0;
};

// MPI as a wire, of its own: what others say by MPI does not meet it. All ranks call this together.
// Throws OptionError, in a sentence, where MPI has not started this job.
std::unique_ptr<Transport> make_mpi_transport(Rank& rank);

}  // namespace ddp
