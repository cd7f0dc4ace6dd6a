#pragma once
// The thread that carries data between this node and the others: what kernels have put into FIFOs
// it sends away, and what arrives it puts into FIFOs for them. (NCCL calls it the network's proxy.)
//
//     kernel ──▶ FIFO ──▶ proxy ══ transport ══▶ proxy ──▶ FIFO ──▶ kernel
#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "05_ranks/rank.hpp"
#include "10_nodes/network/fifo.hpp"
#include "10_nodes/network/transport.hpp"

namespace ddp {

// Lives until all ranks have ended the run (Rank::keep): the last slices may leave when the kernel
// that has filled them is long over.
class NetworkProxy final : private Abortable {
  public:
    // `rank` must outlive it.
    NetworkProxy(Rank& rank, std::unique_ptr<Transport> transport);
    ~NetworkProxy() override;
    NetworkProxy(const NetworkProxy&) = delete;
    NetworkProxy& operator=(const NetworkProxy&) = delete;

    // This node's end of channel `channel` to rank `peer`, or from it: its FIFO, in pinned memory,
    // which lives as long as the proxy. A slot counts as emptied `when` its data has been sent. The
    // other rank must ask for the other end. Before start().
    Fifo* channel_to(int peer, int channel, SendIsDone when = SendIsDone::data_is_free);
    Fifo* channel_from(int peer, int channel);

    // Starts the thread, if there are channels.
    void start();
    // Nothing more will be filled or wanted: the thread ends when all that was is gone.
    void retire() { is_retired_ = true; }

  private:
    // One end of a channel.
    struct ProxyChannel {
        bool is_to;  // it leads to the peer, not from it
        Wire* wire;
        PinnedBuffer<Fifo> fifo;
        std::uint64_t begun = 0, done = 0;  // slots, so far
    };

    void stop() noexcept override {}  // the thread never waits
    std::string error() override;

    Fifo* add(bool is_to, Wire& wire);
    void run();
    bool move_all();
    bool is_quiet();

    Rank& rank_;
    const std::unique_ptr<Transport> transport_;
    std::list<ProxyChannel> channels_;
    std::atomic<bool> is_retired_ = false, is_ending_ = false;
    std::mutex mutex_;
    std::string error_;
    std::thread thread_;
};

}  // namespace ddp
