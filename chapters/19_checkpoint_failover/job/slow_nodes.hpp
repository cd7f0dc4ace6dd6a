#pragma once
// Which node is on a slow network? All ranks of a ring are as slow as the slowest link, so their
// steps do not tell. Messages between two nodes at a time do.
#include <set>
#include <string>
#include <vector>

#include "09_all_reduce/communicator.hpp"
#include "19_checkpoint_failover/job/attempt.hpp"
#include "19_checkpoint_failover/job/launch_job.hpp"

namespace ddp {

// The time of a message from one node to another one and back.
struct RoundTrip {
    std::string from, to;
    double seconds = 0;
};

// Returns a round trip from each node to the next one, in the order of their ranks, and from the
// last one to the first; nothing if there is one node only. All ranks call it together, when
// nothing else is under way.
std::vector<RoundTrip> time_round_trips(Communicator& communicator, Stream& stream);

// Returns the bytes that the communicator must have for it.
std::size_t round_trip_arena_bytes();

struct SlowNode {
    std::string name;
    std::string text;  // a sentence without its full stop, which begins with the name
};
std::vector<SlowNode> slow_nodes(const std::vector<RoundTrip>& round_trips);

// Looks for slow nodes again and again, on behalf of one training.
class SlowNodeWatch {
  public:
    // Looks at once, before much is sent. Both must outlive this object.
    SlowNodeWatch(Communicator& communicator, Stream& stream);

    // Names the nodes on a slow network, after step `step`, to the supervisor or to the reader.
    // The second time that one is named it throws std::runtime_error, if there is a supervisor,
    // which goes on without that node. All ranks call it together.
    void look(int step);

  private:
    Communicator& communicator_;
    Stream& stream_;
    std::set<std::string> named_;
};

// The kind of a status line about a slow node. Its value is the sentence.
inline constexpr const char* slow_node_line = "slow";

// Returns the nodes without those that such lines of the attempts `before` have named twice or more
// often; but one node at least.
std::vector<NodeSlots> without_slow_nodes(const std::vector<NodeSlots>& nodes,
                                          const std::vector<Attempt>& before);

}  // namespace ddp
