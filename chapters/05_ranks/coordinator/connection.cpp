#include "05_ranks/coordinator/connection.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace ddp {
namespace {

std::string reason() {
    return std::generic_category().message(errno);
}

sockaddr_in numeric_address(const std::string& address, std::uint16_t port) {
    sockaddr_in result{};
    result.sin_family = AF_INET;
    result.sin_port = htons(port);
    result.sin_addr.s_addr = htonl(INADDR_ANY);
    if (!address.empty())
        inet_pton(AF_INET, address.c_str(), &result.sin_addr);
    return result;
}

// Returns the address of a node's name; nothing while the name is unknown.
std::optional<sockaddr_in> look_up(const std::string& name, std::uint16_t port) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0)
        return std::nullopt;
    sockaddr_in result;
    std::memcpy(&result, found->ai_addr, sizeof result);
    freeaddrinfo(found);
    result.sin_port = htons(port);
    return result;
}

std::string to_string(const sockaddr_in& address) {
    char text[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
    return text;
}

}  // namespace

Descriptor::~Descriptor() {
    if (number_ >= 0)
        close(number_);
}

// ---- Addresses and sockets

std::array<Descriptor, 2> make_pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw std::runtime_error(std::string("cannot make a pipe: ") + std::strerror(errno));
    return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Descriptor listen_at(const std::string& address, std::uint16_t port) {
    Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;  // the port of a job that has just ended is free
    setsockopt(listener.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const sockaddr_in here = numeric_address(address, port);
    if (bind(listener.number(), reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 ||
        listen(listener.number(), SOMAXCONN) != 0)
        throw std::runtime_error("rank 0 cannot listen at port " + std::to_string(port) + ": " +
                                 reason() + "; set MASTER_PORT to a free one");
    return listener;
}

std::uint16_t port_of(const Descriptor& listener) {
    sockaddr_in here{};
    socklen_t size = sizeof here;
    getsockname(listener.number(), reinterpret_cast<sockaddr*>(&here), &size);
    return ntohs(here.sin_port);
}

Descriptor connect_to(const std::string& address, std::uint16_t port) {
    const std::optional<sockaddr_in> target = look_up(address, port);
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!target || socket.number() < 0)
        return Descriptor();
    if (connect(socket.number(), reinterpret_cast<const sockaddr*>(&*target), sizeof *target) == 0)
        return socket;
    pollfd ready{socket.number(), POLLOUT, 0};
    int error = 0;
    socklen_t size = sizeof error;
    if (errno == EINPROGRESS && poll(&ready, 1, 2000) == 1 &&
        getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0)
        return socket;
    return Descriptor();
}

std::vector<std::string> own_addresses() {
    std::vector<std::string> addresses;
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0)
        throw std::runtime_error("cannot list the networks of this node: " + reason());
    for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
        if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET)
            continue;
        sockaddr_in address;
        std::memcpy(&address, each->ifa_addr, sizeof address);
        addresses.insert(
            (each->ifa_flags & IFF_LOOPBACK) != 0 ? addresses.begin() : addresses.end(),
            to_string(address));
    }
    freeifaddrs(all);
    return addresses;
}

// ---- Messages over a socket

Connection::Connection(Descriptor socket) : socket_(std::move(socket)) {
    const int on = 1;  // sends every message at once, however short (no Nagle algorithm)
    setsockopt(socket_.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void Connection::send(const Message& message) {
    const std::string bytes = encode(message);
    std::lock_guard lock(sending_);
    for (std::size_t sent = 0; sent < bytes.size();) {
        const ssize_t count = ::send(socket_.number(), bytes.data() + sent, bytes.size() - sent,
                                     MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count >= 0) {
            sent += static_cast<std::size_t>(count);
            continue;
        }
        pollfd ready{socket_.number(), POLLOUT, 0};
        if (errno != EINTR && (errno != EAGAIN || poll(&ready, 1, 10'000) == 0))
            throw std::runtime_error("the other end of a connection is gone: " + reason());
    }
}

std::optional<Message> Connection::receive(std::size_t max_bytes) {
    char bytes[16384];
    while (!closed_) {
        const ssize_t count = recv(socket_.number(), bytes, sizeof bytes, MSG_DONTWAIT);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == EAGAIN)
            break;
        closed_ = count <= 0;
        received_.append(bytes, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        if (received_.size() > max_bytes)
            break;
    }
    std::optional<Message> message = decode(received_, max_bytes);
    if (!message && closed_)
        throw std::runtime_error("the other end of a connection is gone");
    return message;
}

std::string Connection::peer_address() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    getpeername(socket_.number(), reinterpret_cast<sockaddr*>(&address), &size);
    return to_string(address);
}

void Connection::finish() noexcept {
    shutdown(socket_.number(), SHUT_WR);
}

}  // namespace ddp
