#pragma once
// How processes that know nothing of each other find each other: rank 0 listens where everybody
// was told to look (MASTER_ADDR, MASTER_PORT), the others connect and say who they are, and when
// all have come each is told who all are. PyTorch calls this the TCPStore.
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "05_ranks/coordinator/message.hpp"
#include "05_ranks/rank.hpp"

namespace ddp {

// A file descriptor that is closed with its owner.
class Descriptor {
  public:
    explicit Descriptor(int number = -1) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor();
    int number() const { return number_; }

  private:
    int number_;
};

// One end of a TCP connection that carries messages. send() may be called by any thread, receive()
// by one.
class Connection {
  public:
    explicit Connection(Descriptor socket);

    // Throws std::runtime_error if the other end is gone, or does not read for 10 seconds.
    void send(const Message& message);
    // The next message, if one has come; never waits. Throws std::runtime_error if the other end is
    // gone or says what is no message.
    std::optional<Message> receive();
    // The other end reads all that was sent, and then that there is no more.
    void finish() noexcept;

    int descriptor() const { return socket_.number(); }

  private:
    Descriptor socket_;
    std::mutex sending_;
    std::string received_;
    bool closed_ = false;
};

// Where rank 0 can be found, and what a process must say to be let in.
struct RendezvousEndpoint {
    std::vector<std::string> addresses;  // names or numbers of the same host; one may be enough
    std::uint16_t port = 0;
    std::string job;  // another job's processes, and whoever else calls, do not know it

    std::string text() const;  // "node0:29500"
};

// Listens at `port` of `address` (empty: of every network of this host); 0 picks a free port.
// Throws std::runtime_error with the reason, such as that another program has the port.
Descriptor listen_at(const std::string& address, std::uint16_t port);
std::uint16_t port_of(const Descriptor& listener);

// A random word that no other job has.
std::string new_job_name();

// This host's addresses, for those who want to reach it; the one that only it can use comes first.
std::vector<std::string> own_addresses();

// The other ranks' connections, by rank (rank 0's own stays empty).
using Connections = std::vector<std::unique_ptr<Connection>>;

// Rank 0's side: waits until ranks 1 to world_size - 1 have come, turns others away, and tells all
// who they are: `members`, whose entry 0 is this process, is filled in. Throws std::runtime_error
// naming the ranks that did not come within `limit_s` (0: for ever).
Connections receive_ranks(const Descriptor& listener, const std::string& job,
                          std::vector<Member>& members, double limit_s);

// Another rank's side: connects, again and again until rank 0 listens, and fills in `members`,
// whose entry `rank` is this process. Throws std::runtime_error if nobody of the job can be reached
// within `limit_s` (0: for ever).
std::unique_ptr<Connection> join_ranks(const RendezvousEndpoint& place, int rank,
                                       std::vector<Member>& members, double limit_s);

}  // namespace ddp
