#pragma once
// torchrun's store. torchrun's agent, the process that starts a node's ranks, keeps texts under
// names for them: a dictionary that can be reached over TCP, PyTorch's TCPStore. It has the port
// that MASTER_PORT names, so rank 0 listens at a different port, and stores its address there.
#include <cstdint>
#include <string>

#include "05_ranks/coordinator/connection.hpp"

namespace ddp {

class AgentStore {
  public:
    // Connects, again and again until the store answers. Throws std::runtime_error if it cannot be
    // reached within `limit_s`, which also limits every later answer (0: no limit).
    AgentStore(const std::string& address, std::uint16_t port, double limit_s);

    // Keeps `value` under `key` for all ranks. Returns when the store has it.
    void set(const std::string& key, const std::string& value);

    // Waits until a rank has set `key`, and returns the value. Throws std::runtime_error if none
    // does.
    std::string get(const std::string& key);

  private:
    void send(const std::string& bytes);
    std::string receive(std::size_t count, const std::string& awaited);

    std::string name_;  // "torchrun's store at localhost:29500", for messages
    double limit_s_;
    Descriptor socket_;
};

}  // namespace ddp
