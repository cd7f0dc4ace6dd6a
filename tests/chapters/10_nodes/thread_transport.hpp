#pragma once
// Several nodes in one process: threads with the names of different nodes, and a transport between
// them that copies memory.
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "05_ranks/coordinator/endpoints.hpp"
#include "05_ranks/world.hpp"
#include "10_nodes/network/transport.hpp"

namespace ddp::test {

// Stands in for TCP. A send is done when the receive that it belongs to has begun.
class ThreadTransports {
  public:
    ThreadTransports();
    ~ThreadTransports();
    // Returns the transport of `rank`. This object must outlive it.
    std::unique_ptr<Transport> of(int rank);
    // Cuts all connections: from now on every wire is broken.
    void cut();
    // Returns how many messages have been sent.
    int messages() const { return messages_; }

  private:
    class End;
    struct Channel;
    using Ends = std::tuple<int, int, int>;  // from, to, channel

    void match(Channel& channel);

    std::mutex mutex_;
    std::map<Ends, Channel> channels_;
    bool is_cut_ = false;
    int messages_ = 0;
};

// Returns a job with one rank for each of `nodes`, on the node of that name.
Job job_on(const std::vector<std::string>& nodes, double timeout_s = 30);

// Runs `work` on every rank of `job`, as threads. Returns the first cause of failure, or "".
std::string failure_of(const Job& job, const std::function<void(Rank&)>& work);

// Runs `work` on one rank for each of `nodes`, on the node of that name. Returns the first cause of
// failure, or "".
std::string failure_on_nodes(const std::vector<std::string>& nodes,
                             const std::function<void(Rank&)>& work, double timeout_s = 30);

}  // namespace ddp::test
