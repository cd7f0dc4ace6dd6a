#pragma once
// The thread that carries data between this host and the others: what kernels have put into FIFOs
// it sends away, and what arrives it puts into FIFOs for them. (NCCL calls it the network's proxy.)
//
//     kernel ──▶ FIFO ──▶ carrier ══ wire ══▶ carrier ──▶ FIFO ──▶ kernel
#include <atomic>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "04_ranks/rank.hpp"
#include "07_all_reduce/fifo.hpp"
#include "07_all_reduce/wire.hpp"

namespace ddp {

// Lives until all ranks have ended the run (Rank::keep): the last slices may leave when the kernel
// that has filled them is long over.
class Carrier final : private Guarded {
  public:
    // `rank` must outlive it.
    Carrier(Rank& rank, std::unique_ptr<Wire> wire) : rank_(rank), wire_(std::move(wire)) {}
    // On all ranks at about the same time.
    ~Carrier() override;
    Carrier(const Carrier&) = delete;
    Carrier& operator=(const Carrier&) = delete;

    // This host's end of line `line` to rank `peer`, or from it: its FIFO, in pinned memory, which
    // lives as long as the carrier. The other rank must ask for the other end. Before start().
    Fifo* line_to(int peer, int line) { return add_line(true, peer, line); }
    Fifo* line_from(int peer, int line) { return add_line(false, peer, line); }

    void start();
    // Nothing more will be filled or wanted: the thread ends when all that was is gone.
    void retire() { is_retired_ = true; }

  private:
    // One end of a line, and what is under way along it.
    struct Line {
        bool is_to;  // it leads to the peer, not from it
        int peer, number;
        PinnedBuffer<Fifo> fifo;
        std::deque<std::unique_ptr<Transfer>> under_way;
        std::uint64_t begun = 0, done = 0;  // slots, so far
        bool has_parted = false;            // nothing more comes, or is to be sent
    };

    void stop() noexcept override {}  // the thread waits for nobody
    std::string complaint() override;

    Fifo* add_line(bool is_to, int peer, int line);
    void run();
    bool move_all();
    bool move(Line& line);
    void begin_transfer(Line& line);
    void end_transfers(Line& line);
    bool is_quiet();
    bool part_from_all();
    void part(Line& line);

    Rank& rank_;
    std::unique_ptr<Wire> wire_;
    std::list<Line> lines_;
    std::atomic<bool> is_retired_ = false, is_ending_ = false;
    std::mutex mutex_;
    std::string complaint_;
    std::thread thread_;  // the last member: it uses all others
};

}  // namespace ddp
