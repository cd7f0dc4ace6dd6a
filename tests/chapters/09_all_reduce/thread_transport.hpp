#pragma once
// Several hosts in one process: threads that believe to be elsewhere, and a wire between them.
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "05_ranks/coordinator/endpoints.hpp"
#include "05_ranks/world.hpp"
#include "09_all_reduce/hosts/transport.hpp"

namespace ddp::test {

// What MPI would be: a send is done when the receiver has a place for it, a line keeps its order.
class ThreadWires {
  public:
    std::unique_ptr<Transport> of(int rank);
    // From now on nothing moves, and every attempt throws.
    void cut();

  private:
    class End;
    struct Payload;
    using ProxyChannel = std::tuple<int, int, int>;  // from, to, number
    struct Waiting {
        std::deque<std::shared_ptr<Payload>> sends, receives;
    };

    void match(Waiting& waiting);

    std::mutex mutex_;
    std::map<ProxyChannel, Waiting> channels_;
    bool is_cut_ = false;
};

// Runs `work` on one rank for each of `hosts`, on the host of this name, and returns the first
// cause of its failure, or "".
std::string failure_on_hosts(const std::vector<std::string>& hosts,
                             const std::function<void(Rank&)>& work, double timeout_s = 30);

}  // namespace ddp::test
