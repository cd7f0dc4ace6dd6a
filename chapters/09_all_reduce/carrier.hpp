#pragma once
// The thread that carries data between this host and the others: what kernels have put into FIFOs
// it sends away, and what arrives it puts into FIFOs for them. (NCCL calls it the network's proxy.)
//
//     kernel ──▶ FIFO ──▶ carrier ══ wire ══▶ carrier ──▶ FIFO ──▶ kernel
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "05_ranks/rank.hpp"
#include "09_all_reduce/fifo.hpp"
#include "09_all_reduce/wire.hpp"

namespace ddp {

class Lines;

// Lives until all ranks have ended the run (Rank::keep): the last slices may leave when the kernel
// that has filled them is long over.
class Carrier final : private Guarded {
  public:
    // `rank` must outlive it.
    Carrier(Rank& rank, std::unique_ptr<Wire> wire);
    // On all ranks at about the same time.
    ~Carrier() override;
    Carrier(const Carrier&) = delete;
    Carrier& operator=(const Carrier&) = delete;

    // This host's end of line `line` to rank `peer`, or from it: its FIFO, in pinned memory, which
    // lives as long as the carrier. The other rank must ask for the other end. Before start().
    Fifo* line_to(int peer, int line);
    Fifo* line_from(int peer, int line);

    void start();
    // Nothing more will be filled or wanted: the thread ends when all that was is gone.
    void retire();

  private:
    void stop() noexcept override {}  // the thread waits for nobody
    std::string complaint() override;

    Rank& rank_;
    // The thread's, too: where a rank is lost, the wire may keep the thread for ever, and then both
    // stay.
    std::shared_ptr<Lines> lines_;
    std::future<void> ended_;
    std::thread thread_;
};

}  // namespace ddp
