// Rank 0 and the others speak to torchrun's agent in the bytes of PyTorch's TCPStore:
//
//     rank 0                            the agent's store                          rank r
//                     VALIDATE word ───▶                   ◀─── VALIDATE word
//                                                          ◀─── WAIT key           1. waits
//     listens at a free port
//     1.            SET key address ───▶  keeps it
//                                                      set ───▶                    2. goes on
//     2.                   GET key ───▶                    ◀─── GET key
//                          address ◀───                        ───▶ address        3. calls rank 0
//
// A request is one byte that says what is asked, and then its texts and numbers. A number has eight
// bytes, the lowest first; a text is its length and its bytes. (torch/csrc/distributed/c10d,
// TCPStore.cpp and TCPStoreBackend.hpp.)
#include "05_ranks/agent_store.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "common/report/units.hpp"

namespace ddp {
namespace {

// The requests that are needed here; PyTorch's store knows ten more.
enum Request : char { validate = 0, set_value = 1, get_value = 3, wait_for_keys = 6 };

// The first thing that a client says: no other program's client would begin so.
constexpr std::uint32_t validation_word = 0x3C85F7CE;

constexpr std::size_t max_value_bytes = 1 << 20;  // what is kept here has some fifty

// ---- Numbers and texts as bytes

template <typename Number>
std::string bytes_of(Number number) {
    std::string bytes(sizeof number, '\0');
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
}

std::string counted(const std::string& text) {
    return bytes_of(std::uint64_t{text.size()}) + text;
}

// Returns how long poll() may wait: -1, for ever, without a limit.
int milliseconds_until(std::chrono::steady_clock::time_point end, double limit_s) {
    if (limit_s <= 0)
        return -1;
    const std::chrono::duration<double, std::milli> left = end - std::chrono::steady_clock::now();
    return static_cast<int>(std::max(left.count(), 0.0));
}

std::chrono::steady_clock::time_point end_of(double limit_s) {
    return std::chrono::steady_clock::now() +
           std::chrono::milliseconds(static_cast<long>(limit_s * 1000));
}

}  // namespace

AgentStore::AgentStore(const std::string& address, std::uint16_t port, double limit_s)
    : name_("torchrun's store at " + address + ":" + std::to_string(port)), limit_s_(limit_s) {
    const auto end = end_of(limit_s);
    while ((socket_ = connect_to(address, port)).number() < 0) {
        if (milliseconds_until(end, limit_s) == 0)
            throw std::runtime_error(name_ + " cannot be reached: is the agent of that node gone?");
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    send(std::string{validate} + bytes_of(validation_word));
}

// SET has no answer: the value is asked for, to know that the store has it.
void AgentStore::set(const std::string& key, const std::string& value) {
    send(std::string{set_value} + counted(key) + counted(value));
    if (get(key) != value)
        throw std::runtime_error(name_ + " has another value of " + key +
                                 ": has torchrun started two ranks 0?");
}

std::string AgentStore::get(const std::string& key) {
    // A GET of a key that nobody has set is an error: first WAIT, for one key.
    send(std::string{wait_for_keys} + bytes_of(std::uint64_t{1}) + counted(key));
    receive(1, key);
    send(std::string{get_value} + counted(key));
    std::uint64_t count = 0;
    std::memcpy(&count, receive(sizeof count, key).data(), sizeof count);
    if (count > max_value_bytes)
        throw std::runtime_error(name_ +
                                 " does not speak as PyTorch's TCPStore does: what listens "
                                 "there?");
    return receive(count, key);
}

// ---- Bytes over the socket, which does not block: poll() waits.

void AgentStore::send(const std::string& bytes) {
    const auto end = end_of(limit_s_);
    for (std::size_t sent = 0; sent < bytes.size();) {
        pollfd ready{socket_.number(), POLLOUT, 0};
        const bool is_ready = poll(&ready, 1, milliseconds_until(end, limit_s_)) == 1;
        const ssize_t count = is_ready ? ::send(socket_.number(), bytes.data() + sent,
                                                bytes.size() - sent, MSG_NOSIGNAL)
                                       : -1;
        if (count < 0)
            throw std::runtime_error(name_ + " takes no request: is the agent of that node gone?");
        sent += static_cast<std::size_t>(count);
    }
}

std::string AgentStore::receive(std::size_t count, const std::string& awaited) {
    const auto end = end_of(limit_s_);
    std::string bytes;
    while (bytes.size() < count) {
        pollfd ready{socket_.number(), POLLIN, 0};
        if (poll(&ready, 1, milliseconds_until(end, limit_s_)) != 1)
            throw std::runtime_error(name_ + " had no " + awaited + " for " +
                                     format_fixed(limit_s_, 1) + " s: was rank 0 started?");
        char buffer[4096];
        const ssize_t got =
            recv(socket_.number(), buffer, std::min(sizeof buffer, count - bytes.size()), 0);
        if (got <= 0)
            throw std::runtime_error(name_ +
                                     " has closed the connection: has torchrun ended, or "
                                     "does another program listen there?");
        bytes.append(buffer, static_cast<std::size_t>(got));
    }
    return bytes;
}

}  // namespace ddp
