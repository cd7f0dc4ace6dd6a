#pragma once
// A connection between two processes, from listening at a port to whole messages.
#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "05_ranks/coordinator/message.hpp"

namespace ddp {

// Owns a file descriptor, and closes it at its end. -1 stands for none.
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
    // Gives the file away: the caller has to close it.
    int release() { return std::exchange(number_, -1); }

  private:
    int number_;
};

// Returns a pipe: the end to read from, and the end to write to. A program that is started inherits
// neither. Throws std::runtime_error if there is none.
std::array<Descriptor, 2> make_pipe();

// Listens at `port` of `address` (empty: of every network of this node); 0 picks a free port.
// Throws std::runtime_error with the reason, such as that another program has the port.
Descriptor listen_at(const std::string& address, std::uint16_t port);
std::uint16_t port_of(const Descriptor& listener);

// Returns a connected socket, or an empty Descriptor if the node is unknown, refuses, or does not
// answer within two seconds.
Descriptor connect_to(const std::string& address, std::uint16_t port);

// Returns this node's addresses. The one that only this node can use comes first.
std::vector<std::string> own_addresses();

// One end of a TCP connection that carries messages. Any thread may call send(); one thread at a
// time may call receive().
class Connection {
  public:
    explicit Connection(Descriptor socket);

    // Throws std::runtime_error if the other end is gone, or does not read for 10 seconds.
    void send(const Message& message);
    // Returns the next message if it has arrived; never waits. Throws std::runtime_error if the
    // other end is gone or sends bytes that are not a message, of `max_bytes` at most.
    std::optional<Message> receive(std::size_t max_bytes = max_message_bytes);
    // Ends this direction: the other end still reads what was sent, and then sees the end.
    void finish() noexcept;

    int descriptor() const { return socket_.number(); }
    // Returns the other end's address, "10.77.0.2".
    std::string peer_address() const;

  private:
    Descriptor socket_;
    std::mutex sending_;
    std::string received_;
    bool closed_ = false;
};

}  // namespace ddp
