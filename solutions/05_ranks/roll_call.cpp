// The exercise roll_call: who is where, and who is missing. Read exercises/05_ranks/README.md
// first.
#include "exercises/05_ranks/roll_call.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace ddp {
namespace {

//: A connection carries bytes. How does the other end know where a message ends?
// stub

// Messages are lines of text:
//
//     rank r to rank 0:  its address, a line
//     rank 0 to rank r:  "list", a line; the addresses, N lines
//                    or  "failed", a line; the rank that is the cause, a line

// Holds what has come over one connection so far, cut into lines.
struct Inbox {
    int connection;
    std::string rest;  // of a line whose end has not come
    std::vector<std::string> lines;
};

void send_lines(int connection, const std::vector<std::string>& lines) {
    std::string bytes;
    for (const std::string& line : lines)
        bytes += line + '\n';
    // The other end may be gone. That shows where something is read from it.
    send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

// Reads what has come. Returns false if the other end is gone.
bool read_from(Inbox& inbox) {
    char bytes[4096];
    const ssize_t count = read(inbox.connection, bytes, sizeof bytes);
    if (count <= 0)
        return false;
    inbox.rest.append(bytes, static_cast<std::size_t>(count));
    for (std::size_t end; (end = inbox.rest.find('\n')) != std::string::npos;) {
        inbox.lines.push_back(inbox.rest.substr(0, end));
        inbox.rest.erase(0, end + 1);
    }
    return true;
}

// Waits until something can be read from one of `inboxes`, and returns all of which that is true.
std::vector<Inbox*> wait_for_bytes(std::vector<Inbox>& inboxes) {
    std::vector<pollfd> ready;
    for (const Inbox& inbox : inboxes)
        ready.push_back({inbox.connection, POLLIN, 0});
    std::vector<Inbox*> result;
    while (result.empty()) {
        poll(ready.data(), ready.size(), -1);
        for (std::size_t i = 0; i < ready.size(); i++)
            if (ready[i].revents != 0)
                result.push_back(&inboxes[i]);
    }
    return result;
}

// ---- Rank 0's side

// Waits until all ranks have sent their line. inboxes[r - 1] is that of rank r.
void hear_all(std::vector<Inbox>& inboxes) {
    const auto has_come = [](const Inbox& inbox) { return inbox.lines.size() == 1; };
    // A rank that has come may still go: all are looked at, in whatever order they come.
    while (!std::ranges::all_of(inboxes, has_come))
        for (Inbox* inbox : wait_for_bytes(inboxes))
            if (!read_from(*inbox))
                throw RollFailed(static_cast<int>(inbox - inboxes.data()) + 1);
}

std::vector<std::string> call_the_roll(const std::string& address,
                                       const std::vector<int>& connections) {
    std::vector<Inbox> inboxes;
    for (std::size_t rank = 1; rank < connections.size(); rank++)
        inboxes.push_back({connections[rank], "", {}});
    try {
        hear_all(inboxes);
    } catch (const RollFailed& failure) {
        for (const Inbox& inbox : inboxes)
            send_lines(inbox.connection, {"failed", std::to_string(failure.rank)});
        throw;
    }
    std::vector<std::string> addresses{address};
    for (const Inbox& inbox : inboxes)
        addresses.push_back(inbox.lines[0]);
    std::vector<std::string> lines = addresses;
    lines.insert(lines.begin(), "list");
    for (const Inbox& inbox : inboxes)
        send_lines(inbox.connection, lines);
    return addresses;
}

// ---- The other ranks' side

std::vector<std::string> answer_the_roll(int world_size, const std::string& address,
                                         int connection) {
    send_lines(connection, {address});
    std::vector<Inbox> inboxes{{connection, "", {}}};
    const std::vector<std::string>& lines = inboxes[0].lines;
    const auto count = static_cast<std::size_t>(world_size) + 1;
    while (lines.empty() || lines.size() < (lines[0] == "failed" ? 2 : count)) {
        if (!read_from(inboxes[0]))
            throw RollFailed(0);
    }
    if (lines[0] == "failed")
        throw RollFailed(std::stoi(lines[1]));
    return {lines.begin() + 1, lines.end()};
}
// end stub

}  // namespace

std::vector<std::string> take_roll(int rank, int world_size, const std::string& address,
                                   const std::vector<int>& connections) {
    // stub: list
    //: Rank 0 reads from all the others, and then sends to all of them.
    if (rank == 0)
        return call_the_roll(address, connections);
    return answer_the_roll(world_size, address, connections[0]);
    // end stub
}

}  // namespace ddp
