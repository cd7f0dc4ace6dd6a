#include "05_ranks/rendezvous.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace ddp {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// A wait's end; a limit of 0 never comes.
class Deadline {
  public:
    explicit Deadline(double limit_s) : limit_s_(limit_s) {}
    bool has_come() const {
        return limit_s_ > 0 && Clock::now() - start_ > std::chrono::duration<double>(limit_s_);
    }

  private:
    double limit_s_;
    Clock::time_point start_ = Clock::now();
};

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

// What a host's name stands for; nothing while nobody knows it.
std::optional<sockaddr_in> look_up(const std::string& address, std::uint16_t port) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(address.c_str(), nullptr, &hints, &found) != 0)
        return std::nullopt;
    sockaddr_in result;
    std::memcpy(&result, found->ai_addr, sizeof result);
    freeaddrinfo(found);
    result.sin_port = htons(port);
    return result;
}

// A connected socket, or one without a number. A host that does not answer is given two seconds.
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

// ---- Who is who, as parts of a message: two for each member.

std::vector<std::string> to_parts(const std::vector<Member>& members) {
    std::vector<std::string> parts;
    for (const Member& member : members) {
        parts.push_back(member.host);
        parts.push_back(std::to_string(member.process));
    }
    return parts;
}

std::vector<Member> to_members(const std::vector<std::string>& parts) {
    std::vector<Member> members;
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
        Member& member = members.emplace_back();
        member.host = parts[i];
        member.process = std::atoi(parts[i + 1].c_str());
    }
    return members;
}

// A rank's place among those of its host follows from who is where.
void number_within_hosts(std::vector<Member>& members) {
    for (Member& member : members) {
        member.local_rank = static_cast<int>(std::count_if(
            members.data(), &member, [&](const Member& m) { return m.host == member.host; }));
        member.local_world_size =
            static_cast<int>(std::ranges::count(members, member.host, &Member::host));
    }
}

// ---- Rank 0's side

// The rank that a hello brings; throws a sentence for the caller if it does not belong here.
std::size_t check_hello(const Message& hello, const std::string& job,
                        const Connections& connections) {
    const std::string world_size = std::to_string(connections.size());
    if (hello.kind != Message::Kind::hello || hello.parts.size() != 3 || hello.text != job)
        throw std::runtime_error("another job meets here");
    if (hello.parts[2] != world_size)
        throw std::runtime_error("this job has " + world_size + " ranks, not " + hello.parts[2]);
    if (hello.number == 0 || hello.number >= connections.size())
        throw std::runtime_error("rank " + std::to_string(hello.number) +
                                 " is none of ranks 1 to " +
                                 std::to_string(connections.size() - 1));
    return hello.number;
}

// Reads what a caller says; true when that was all there is to hear of it before it has a rank.
bool hear(std::unique_ptr<Connection>& caller, const std::string& job, Connections& connections,
          std::vector<Member>& members) {
    try {
        const std::optional<Message> hello = caller->receive();
        if (!hello)
            return false;
        const std::size_t rank = check_hello(*hello, job, connections);
        const Member member = to_members({hello->parts[0], hello->parts[1]})[0];
        const bool is_new =
            member.host != members[rank].host || member.process != members[rank].process;
        if (connections[rank] && is_new)  // a process may try again, but two cannot be one rank
            throw std::runtime_error("rank " + std::to_string(rank) + " is here already");
        caller->send({});
        members[rank] = member;
        connections[rank] = std::move(caller);
    } catch (const std::exception& error) {
        try {
            caller->send({Message::Kind::refused, 0, 0, error.what(), {}});
            caller->finish();
        } catch (const std::exception&) {  // it is gone: so much the better
        }
    }
    return true;
}

// ---- The other ranks' side

// Who all are, once all have come. Throws if this is not the meeting that was looked for.
std::vector<Member> wait_for_welcome(Connection& connection, std::size_t world_size,
                                     const Deadline& deadline) {
    const Deadline first_answer(5);  // somebody else may listen here, who says nothing
    bool is_let_in = false;
    do {  // at least once: an answer that says why is on its way
        pollfd ready{connection.descriptor(), POLLIN, 0};
        poll(&ready, 1, 50);
        const std::optional<Message> answer = connection.receive();
        if (!answer && !is_let_in && first_answer.has_come())
            throw std::runtime_error("whoever listens there does not answer");
        if (!answer)
            continue;
        is_let_in = true;
        if (answer->kind == Message::Kind::refused)
            throw std::runtime_error(answer->text);
        if (answer->kind != Message::Kind::welcome)
            continue;
        std::vector<Member> members = to_members(answer->parts);
        if (members.size() != world_size)
            throw std::runtime_error("a job of another size meets there");
        number_within_hosts(members);
        return members;
    } while (!deadline.has_come());
    throw std::runtime_error("not all ranks came");
}

std::string who_is_missing(const Connections& connections) {
    std::string ranks;
    for (std::size_t r = 1; r < connections.size(); r++)
        if (!connections[r])
            ranks += (ranks.empty() ? "rank " : ", rank ") + std::to_string(r);
    return ranks;
}

}  // namespace

// ---- Connections

Descriptor::~Descriptor() {
    if (number_ >= 0)
        close(number_);
}

Connection::Connection(Descriptor socket) : socket_(std::move(socket)) {
    const int on = 1;  // a message is sent when it is said, not when it is long enough
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

std::optional<Message> Connection::receive() {
    char bytes[16384];
    while (!closed_) {
        const ssize_t count = recv(socket_.number(), bytes, sizeof bytes, MSG_DONTWAIT);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == EAGAIN)
            break;
        closed_ = count <= 0;
        received_.append(bytes, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        if (received_.size() > most_message_bytes)
            break;
    }
    std::optional<Message> message = decode(received_);
    if (!message && closed_)
        throw std::runtime_error("the other end of a connection is gone");
    return message;
}

void Connection::finish() noexcept {
    shutdown(socket_.number(), SHUT_WR);
}

// ---- Places

std::string RendezvousEndpoint::text() const {
    return (addresses.empty() ? "" : addresses.front()) + ":" + std::to_string(port);
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

std::string new_job_name() {
    std::random_device random;
    std::string name;
    for (int i = 0; i < 16; i++)
        name += "0123456789abcdef"[random() % 16];
    return name;
}

std::vector<std::string> own_addresses() {
    std::vector<std::string> addresses;
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0)
        throw std::runtime_error("cannot list the networks of this host: " + reason());
    for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
        if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET)
            continue;
        sockaddr_in address;
        std::memcpy(&address, each->ifa_addr, sizeof address);
        char text[INET_ADDRSTRLEN];
        inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
        addresses.insert(
            (each->ifa_flags & IFF_LOOPBACK) != 0 ? addresses.begin() : addresses.end(), text);
    }
    freeifaddrs(all);
    return addresses;
}

// ---- The two sides

Connections receive_ranks(const Descriptor& listener, const std::string& job,
                          std::vector<Member>& members, double limit_s) {
    Connections connections(members.size());
    std::vector<std::unique_ptr<Connection>> callers;  // that have not said yet who they are
    const Deadline deadline(limit_s);
    for (std::string missing; !(missing = who_is_missing(connections)).empty();) {
        if (deadline.has_come())
            throw std::runtime_error("rank 0 waited for " + missing + " at port " +
                                     std::to_string(port_of(listener)) +
                                     " in vain: were all processes of the job started?");
        std::vector<pollfd> ready{{listener.number(), POLLIN, 0}};
        for (const auto& caller : callers)
            ready.push_back({caller->descriptor(), POLLIN, 0});
        poll(ready.data(), ready.size(), 50);
        Descriptor caller(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC));
        if (caller.number() >= 0)
            callers.push_back(std::make_unique<Connection>(std::move(caller)));
        std::erase_if(callers, [&](auto& each) { return hear(each, job, connections, members); });
    }
    for (const auto& connection : connections)
        if (connection)
            connection->send({Message::Kind::welcome, 0, 0, "", to_parts(members)});
    number_within_hosts(members);
    return connections;
}

std::unique_ptr<Connection> join_ranks(const RendezvousEndpoint& place, int rank,
                                       std::vector<Member>& members, double limit_s) {
    const Member& own = members[static_cast<std::size_t>(rank)];
    const Message hello{Message::Kind::hello,
                        0,
                        static_cast<std::uint64_t>(rank),
                        place.job,
                        {own.host, std::to_string(own.process), std::to_string(members.size())}};
    const Deadline deadline(limit_s);
    std::string why = "nobody answered";
    for (std::size_t attempt = 0; !deadline.has_come(); attempt++) {
        try {
            Descriptor socket =
                connect_to(place.addresses[attempt % place.addresses.size()], place.port);
            if (socket.number() < 0)
                throw std::runtime_error("nobody answered");
            auto connection = std::make_unique<Connection>(std::move(socket));
            connection->send(hello);
            members = wait_for_welcome(*connection, members.size(), deadline);
            return connection;
        } catch (const std::runtime_error& error) {
            why = error.what();
        }
        std::this_thread::sleep_for(20ms);
    }
    throw std::runtime_error("rank " + std::to_string(rank) + " could not meet the others at " +
                             place.text() + ": " + why);
}

}  // namespace ddp
