// TCP as a transport. Each rank listens at a port of its own. The first message of a channel makes
// a connection, along which go, from the sender,
//
//     a hello        the word of this transport, the sender, the channel
//     and messages   each with its length before it
//
// and back, if the sender wants to know, a byte for each message that the receiver has. TCP keeps
// the order, and what nobody receives yet waits in the two sockets, until the sender must wait,
// too. (NCCL's transport over sockets does the same.)
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <list>
#include <map>
#include <random>
#include <stdexcept>
#include <system_error>

#include "05_ranks/coordinator/connection.hpp"
#include "10_nodes/network/transport.hpp"

namespace ddp {
namespace {

using Length = std::uint64_t;

struct Hello {
    std::uint64_t word;
    std::int32_t from, channel;
    std::uint64_t is_answered;
};

// One connection.
class SocketWire : public Wire {
  public:
    explicit SocketWire(std::string peer) : peer_(std::move(peer)) {}

    // Returns what the wire waits for; the socket is -1 if it waits for nothing.
    pollfd awaited() const {
        const short events = awaited_events();
        return {is_lost_ || events == 0 ? -1 : socket_.number(), events, 0};
    }

  protected:
    struct Message {
        std::byte* data;
        std::size_t bytes;
    };

    virtual short awaited_events() const = 0;

    // Takes what a call on the socket has returned: returns the bytes that it has moved.
    std::size_t moved(ssize_t result);
    std::size_t receive(void* to, std::size_t bytes) {
        const ssize_t count = recv(socket_.number(), to, bytes, MSG_DONTWAIT);
        is_lost_ = is_lost_ || count == 0;
        return moved(count);
    }

    const std::string peer_;
    Descriptor socket_;
    std::deque<Message> messages_;  // that have been begun, and have not gone or come yet
    std::size_t moved_ = 0;         // bytes of the first one, and of its length
    bool is_lost_ = false;          // the other end is gone
};

// A process that has ended is not this rank's error: the coordinator (05_ranks) finds out why.
std::size_t SocketWire::moved(ssize_t result) {
    if (result >= 0)
        return static_cast<std::size_t>(result);
    if (errno == ECONNRESET || errno == EPIPE)
        is_lost_ = true;
    else if (errno != EAGAIN && errno != EINTR)
        throw std::runtime_error("the connection to " + peer_ +
                                 " has broken: " + std::generic_category().message(errno));
    return 0;
}

class SendingWire final : public SocketWire {
  public:
    // `to` and `port` are where the receiver listens.
    SendingWire(const std::string& peer, std::string to, std::uint16_t port, const Hello& hello)
        : SocketWire(peer), to_(std::move(to)), port_(port), hello_(hello) {}

    void begin(std::byte* data, std::size_t bytes) override {
        if (socket_.number() < 0)
            connect();
        messages_.push_back({data, bytes});
        send_all();
    }

    std::uint64_t done() override {
        send_all();
        char answers[64];
        if (hello_.is_answered != 0 && sent_ > answered_)
            answered_ += receive(answers, sizeof answers);
        return hello_.is_answered != 0 ? answered_ : sent_;
    }

  private:
    void connect() {
        socket_ = connect_to(to_, port_);
        if (socket_.number() < 0)
            throw std::runtime_error("no connection can be made to " + peer_ + " at " + to_ +
                                     ", port " + std::to_string(port_) +
                                     ": may ranks connect to any port of that node?");
        const int on = 1;  // sends every message at once, however short (no Nagle algorithm)
        setsockopt(socket_.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        moved(::send(socket_.number(), &hello_, sizeof hello_, MSG_NOSIGNAL));
    }

    // Sends as much as the socket takes.
    void send_all() {
        while (!messages_.empty() && !is_lost_) {
            const std::size_t count = send_some(messages_.front());
            moved_ += count;
            if (count == 0)
                return;
            if (moved_ == sizeof(Length) + messages_.front().bytes) {
                messages_.pop_front();
                moved_ = 0;
                sent_++;
            }
        }
    }
    // The length and the data go together, in one packet if they are short.
    std::size_t send_some(const Message& message) {
        Length length = message.bytes;
        const std::size_t of_length = std::min(moved_, sizeof length);
        const std::size_t of_data = moved_ - of_length;
        iovec parts[] = {
            {reinterpret_cast<std::byte*>(&length) + of_length, sizeof length - of_length},
            {message.data + of_data, message.bytes - of_data}};
        msghdr both{};
        both.msg_iov = parts;
        both.msg_iovlen = 2;
        return moved(sendmsg(socket_.number(), &both, MSG_NOSIGNAL | MSG_DONTWAIT));
    }

    short awaited_events() const override {
        const bool is_full = !messages_.empty();
        const bool wants_answer = hello_.is_answered != 0 && sent_ > answered_;
        return static_cast<short>((is_full ? POLLOUT : 0) | (wants_answer ? POLLIN : 0));
    }

    const std::string to_;
    const std::uint16_t port_;
    const Hello hello_;
    std::uint64_t sent_ = 0, answered_ = 0;
};

class ReceivingWire final : public SocketWire {
  public:
    using SocketWire::SocketWire;

    // The sender has connected.
    void open(Descriptor socket, bool is_answered) {
        socket_ = std::move(socket);
        is_answered_ = is_answered;
    }
    bool is_open() const { return socket_.number() >= 0; }

    void begin(std::byte* data, std::size_t bytes) override { messages_.push_back({data, bytes}); }

    std::uint64_t done() override {
        while (is_open() && !messages_.empty() && !is_lost_ && receive_some(messages_.front()) > 0)
            if (moved_ >= sizeof length_ && moved_ == sizeof length_ + length_)
                end_message();
        return received_;
    }

  private:
    std::size_t receive_some(const Message& message) {
        const bool has_length = moved_ >= sizeof length_;
        const std::size_t of_data = moved_ - sizeof length_;
        const std::size_t count =
            has_length
                ? receive(message.data + of_data, length_ - of_data)
                : receive(reinterpret_cast<std::byte*>(&length_) + moved_, sizeof length_ - moved_);
        moved_ += count;
        if (moved_ >= sizeof length_ && length_ > message.bytes)
            throw std::runtime_error(peer_ + " has sent " + std::to_string(length_) +
                                     " bytes where at most " + std::to_string(message.bytes) +
                                     " were expected: start the same build on all ranks");
        return count;
    }
    void end_message() {
        if (is_answered_)
            moved(::send(socket_.number(), "", 1, MSG_NOSIGNAL | MSG_DONTWAIT));
        messages_.pop_front();
        moved_ = 0;
        received_++;
    }

    short awaited_events() const override {
        return static_cast<short>(messages_.empty() ? 0 : POLLIN);
    }

    bool is_answered_ = false;
    Length length_ = 0;  // of the first message, once it has come
    std::uint64_t received_ = 0;
};

class SocketTransport final : public Transport {
  public:
    explicit SocketTransport(Rank& rank) : job_(rank.job()), rank_(rank.rank()) {
        std::random_device random;
        word_ = rank.broadcast((std::uint64_t{random()} << 32) + random(), 0);
        ports_ = rank.all_gather(port_of(listener_));
    }

    Wire& wire_to(int rank, int channel, SendIsDone when) override {
        const auto index = static_cast<std::size_t>(rank);
        const Hello hello{word_, rank_, channel, when == SendIsDone::receiver_has_it};
        return sending_
            .try_emplace({rank, channel}, job_.name(rank), job_.members[index].address,
                         ports_[index], hello)
            .first->second;
    }
    Wire& wire_from(int rank, int channel) override {
        return receiving_.try_emplace({rank, channel}, job_.name(rank)).first->second;
    }

    void wait(std::chrono::nanoseconds most) override {
        std::vector<pollfd> awaited{{listener_.number(), POLLIN, 0}};
        for (const Caller& caller : callers_)
            awaited.push_back({caller.socket.number(), POLLIN, 0});
        for (const auto& [ends, wire] : sending_)
            awaited.push_back(wire.awaited());
        for (const auto& [ends, wire] : receiving_)
            awaited.push_back(wire.awaited());
        const timespec limit{most.count() / 1'000'000'000, most.count() % 1'000'000'000};
        ppoll(awaited.data(), awaited.size(), &limit, nullptr);
        if (awaited[0].revents != 0)
            accept_one();
        std::erase_if(callers_, [this](Caller& caller) { return admit(caller); });
    }

  private:
    using Ends = std::pair<int, int>;  // the other rank, and the channel

    // Somebody who has connected. Of its hello, so many bytes have arrived.
    struct Caller {
        Descriptor socket;
        Hello hello{};
        std::size_t heard = 0;
    };

    void accept_one() {
        Descriptor socket(accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
        if (socket.number() >= 0)
            callers_.push_back({std::move(socket)});
    }
    // False while the caller's hello has not arrived. Whoever says another word is no rank of ours.
    bool admit(Caller& caller) {
        Hello& hello = caller.hello;
        const ssize_t count =
            recv(caller.socket.number(), reinterpret_cast<std::byte*>(&hello) + caller.heard,
                 sizeof hello - caller.heard, MSG_DONTWAIT);
        if (count < 0 && (errno == EAGAIN || errno == EINTR))
            return false;
        if (count <= 0)
            return true;
        caller.heard += static_cast<std::size_t>(count);
        if (caller.heard < sizeof hello)
            return false;
        const auto wire = receiving_.find({hello.from, hello.channel});
        if (hello.word == word_ && wire != receiving_.end() && !wire->second.is_open())
            wire->second.open(std::move(caller.socket), hello.is_answered != 0);
        return true;
    }

    const Job& job_;
    const int rank_;
    const Descriptor listener_ = listen_at("", 0);
    std::uint64_t word_;                // no stranger knows it
    std::vector<std::uint16_t> ports_;  // by rank
    std::map<Ends, SendingWire> sending_;
    std::map<Ends, ReceivingWire> receiving_;
    std::list<Caller> callers_;
};

}  // namespace

std::unique_ptr<Transport> make_socket_transport(Rank& rank) {
    return std::make_unique<SocketTransport>(rank);
}

}  // namespace ddp
