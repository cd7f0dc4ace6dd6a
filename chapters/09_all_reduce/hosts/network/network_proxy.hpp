#pragma once
// The thread that carries data between this host and the others: what kernels have put into FIFOs
// it sends away, and what arrives it puts into FIFOs for them. (NCCL calls it the network's proxy.)
//
//     kernel ──▶ FIFO ──▶ proxy ══ transport ══▶ proxy ──▶ FIFO ──▶ kernel
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "05_ranks/rank.hpp"
#include "09_all_reduce/hosts/fifo.hpp"
#include "09_all_reduce/hosts/network/transport.hpp"

namespace ddp {

class ProxyChannels;

// Lives until all ranks have ended the run (Rank::keep): the last slices may leave when the kernel
// that has filled them is long over.
class NetworkProxy final : private Abortable {
  public:
    // `rank` must outlive it.
    NetworkProxy(Rank& rank, std::unique_ptr<Transport> transport);
    // On all ranks at about the same time.
    ~NetworkProxy() override;
    NetworkProxy(const NetworkProxy&) = delete;
    NetworkProxy& operator=(const NetworkProxy&) = delete;

    // This host's end of channel `channel` to rank `peer`, or from it: its FIFO, in pinned memory,
    // which lives as long as the proxy. The other rank must ask for the other end. Before start().
    Fifo* channel_to(int peer, int channel);
    Fifo* channel_from(int peer, int channel);

    // Starts the thread, if there are channels.
    void start();
    // Nothing more will be filled or wanted: the thread ends when all that was is gone.
    void retire();

  private:
    void stop() noexcept override {}  // the thread waits for nobody
    std::string error() override;

    Rank& rank_;
    // The thread's, too: where a rank is lost, the transport may keep the thread for ever, and then
    // both stay.
    std::shared_ptr<ProxyChannels> channels_;
    std::future<void> ended_;
    std::thread thread_;
};

}  // namespace ddp
