// The rendezvous in three steps, between rank 0 and each other rank:
//
//     rank 0: receive_ranks                       rank r: join_ranks
//     listens at MASTER_PORT
//                               ◀───  hello       1. connects, and sends its rank, node and process
//     2. checks it        alive ───▶              keeps the connection, and waits
//     3. when ranks 1 to N - 1 are there:
//        the list       welcome ───▶              knows all ranks
//
// The ranks may come in any order. One that cannot connect, since rank 0 does not listen yet, tries
// again. A process of another job is refused, during the rendezvous and afterwards. The connections
// stay open: the coordinator uses them (coordinator/endpoints.cpp).
#include "05_ranks/rendezvous.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace ddp {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// The end of a wait. With a limit of 0 it never comes.
class Deadline {
  public:
    explicit Deadline(double limit_s) : limit_s_(limit_s) {}
    bool has_passed() const {
        return limit_s_ > 0 && Clock::now() - start_ > std::chrono::duration<double>(limit_s_);
    }

  private:
    double limit_s_;
    Clock::time_point start_ = Clock::now();
};

// ---- The list of ranks in a message: three texts for each, its node, its process and its address.

std::vector<std::string> to_parts(const std::vector<Member>& members) {
    std::vector<std::string> parts;
    for (const Member& member : members) {
        parts.push_back(member.node);
        parts.push_back(std::to_string(member.process));
        parts.push_back(member.address);
    }
    return parts;
}

std::vector<Member> to_members(const std::vector<std::string>& parts) {
    std::vector<Member> members;
    for (std::size_t i = 0; i + 2 < parts.size(); i += 3) {
        Member& member = members.emplace_back();
        member.node = parts[i];
        member.process = std::atoi(parts[i + 1].c_str());
        member.address = parts[i + 2];
    }
    return members;
}

// Fills in the local ranks, which follow from the list: a rank's place among the ranks of the same
// node, in the order of ranks.
void number_within_nodes(std::vector<Member>& members) {
    for (Member& member : members) {
        member.local_rank = static_cast<int>(std::count_if(
            members.data(), &member, [&](const Member& m) { return m.node == member.node; }));
        member.local_world_size =
            static_cast<int>(std::ranges::count(members, member.node, &Member::node));
    }
}

// Say, in rank 0's words, why a process does not belong to its job. After the first it tries again:
// rank 0 may be that of a job that is about to end.
struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct RefusedForGood : Refused {
    using Refused::Refused;
};

// ---- Rank 0's side

// Returns the rank that sent `hello`. Throws if the process does not belong to this job; the text
// is the answer that it gets.
std::size_t check_hello(const Message& hello, const std::string& job, std::size_t world_size) {
    if (hello.kind != Message::Kind::hello || hello.parts.size() != 3 || hello.text != job)
        throw std::runtime_error(
            "another job meets here: its TORCHELASTIC_RUN_ID or, without one, "
            "its options are different");
    // Two starts with different numbers of ranks at one port, for example, or a wrong variable.
    if (hello.parts[2] != std::to_string(world_size))
        throw std::runtime_error("this job has " + std::to_string(world_size) + " ranks, not " +
                                 hello.parts[2]);
    if (hello.number == 0 || hello.number >= world_size)
        throw std::runtime_error("rank " + std::to_string(hello.number) +
                                 " is none of ranks 1 to " + std::to_string(world_size - 1));
    return hello.number;
}

// Returns what a second process of a rank is told.
std::string already_here(std::size_t rank, const Member& first) {
    return "rank " + std::to_string(rank) + " is here already: process " +
           std::to_string(first.process) + " on " + first.node +
           " has the same RANK. If two jobs meet at this port, give each its own MASTER_PORT, or a "
           "word of its own in TORCHELASTIC_RUN_ID";
}

// Returns "rank 1, rank 3", those that have not come; "" if all have.
std::string missing_ranks(const Connections& connections) {
    std::string ranks;
    for (std::size_t r = 1; r < connections.size(); r++)
        if (!connections[r])
            ranks += (ranks.empty() ? "rank " : ", rank ") + std::to_string(r);
    return ranks;
}

// ---- The other ranks' side

// Waits until all ranks have come, and returns the list of them. Throws if this is not the job that
// this rank belongs to.
std::vector<Member> wait_for_welcome(Connection& connection, std::size_t world_size,
                                     const Deadline& deadline) {
    const Deadline first_answer(5);  // another program may listen here, and never answer
    bool is_admitted = false;
    do {  // at least once: an answer with a reason may be on its way
        pollfd ready{connection.descriptor(), POLLIN, 0};
        poll(&ready, 1, 50);
        const std::optional<Message> answer = connection.receive();
        if (!answer && !is_admitted && first_answer.has_passed())
            throw std::runtime_error("the program that listens there does not answer");
        if (!answer)
            continue;
        is_admitted = true;
        // It does: alive (admitted, wait for the others), refused, or welcome (all are there).
        if (answer->kind == Message::Kind::refused && answer->number != 0)
            throw RefusedForGood(answer->text);
        if (answer->kind == Message::Kind::refused)
            throw Refused(answer->text);
        if (answer->kind != Message::Kind::welcome)
            continue;
        std::vector<Member> members = to_members(answer->parts);
        if (members.size() != world_size)
            throw std::runtime_error("a job of another size meets there");
        number_within_nodes(members);
        return members;
    } while (!deadline.has_passed());
    throw std::runtime_error("not all ranks came");
}

}  // namespace

std::string RendezvousEndpoint::text() const {
    return (addresses.empty() ? "" : addresses.front()) + ":" + std::to_string(port);
}

// ---- The two sides

Reception::Reception(Descriptor listener, std::string job)
    : listener_(std::move(listener)), job_(std::move(job)) {}

Connections Reception::receive_ranks(std::vector<Member>& members, double limit_s) {
    // A connection moves from `callers_` to `connections[r]` when its hello says that it is rank r.
    Connections connections(members.size());
    const auto admit = [&](std::size_t rank, const Member& member, Caller& caller) {
        // A process may connect again, but two processes cannot be one rank.
        Member& known = members[rank];
        const bool is_new = member.node != known.node || member.process != known.process;
        if (connections[rank] && is_new)
            throw Refused(already_here(rank, known));
        caller->send({});  // alive: a server of another kind would have sent something else
        known = member;
        connections[rank] = std::move(caller);
    };
    const Deadline deadline(limit_s);
    for (std::string missing; !(missing = missing_ranks(connections)).empty();) {
        if (deadline.has_passed())
            throw std::runtime_error("rank 0 waited for " + missing + " at port " +
                                     std::to_string(port_of(listener_)) +
                                     " in vain: were all processes of the job started?");
        // Wait until another process connects, or one that is connected sends its hello.
        std::vector<pollfd> ready{{listener_.number(), POLLIN, 0}};
        for (const Caller& caller : callers_)
            ready.push_back({caller->descriptor(), POLLIN, 0});
        poll(ready.data(), ready.size(), 50);
        // Steps 1 and 2: read what has arrived, and check it.
        answer_callers(members.size(), admit);
    }
    // Step 3: all ranks are there.
    // Every rank gets the same list, and numbers the local ranks from it in the same way.
    for (const auto& connection : connections)
        if (connection)
            connection->send({Message::Kind::welcome, 0, 0, "", to_parts(members)});
    number_within_nodes(members);
    return connections;
}

// A second process of a rank that is here belongs to another job, or was started by mistake. But if
// the rank has left, its node may have begun with the next job already.
void Reception::refuse_callers(const std::vector<Member>& members,
                               const std::function<bool(std::size_t)>& is_here) {
    answer_callers(members.size(), [&](std::size_t rank, const Member&, const Caller&) {
        if (is_here(rank))
            throw RefusedForGood(already_here(rank, members[rank]));
        throw Refused("the job that meets here has yet to end");
    });
}

// Calls admit(rank, member, caller) for each caller whose hello has come, and tells a caller for
// which that throws why it does not belong here. Then lets the next caller in.
void Reception::answer_callers(std::size_t world_size, const Admit& admit) {
    std::erase_if(callers_, [&](Caller& caller) {
        try {
            const std::optional<Message> hello = caller->receive(max_hello_bytes);
            if (!hello)
                return false;
            const std::size_t rank = check_hello(*hello, job_, world_size);
            // Its address is where it has called from: the others will reach it there, too.
            const std::vector<std::string>& parts = hello->parts;
            admit(rank, to_members({parts[0], parts[1], caller->peer_address()})[0], caller);
        } catch (const std::exception& error) {
            const bool is_for_good = dynamic_cast<const RefusedForGood*>(&error) != nullptr;
            try {
                caller->send({Message::Kind::refused, 0, is_for_good, error.what(), {}});
                caller->finish();
            } catch (const std::exception&) {
                // It has gone already, and needs no answer.
            }
        }
        return true;
    });
    Descriptor caller(accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    if (caller.number() >= 0)
        callers_.push_back(std::make_unique<Connection>(std::move(caller)));
    // A rank sends its hello at once: the first caller that has sent none is a stranger.
    if (callers_.size() > world_size + 64)
        callers_.erase(callers_.begin());
}

std::unique_ptr<Connection> join_ranks(const RendezvousEndpoint& endpoint, int rank,
                                       std::vector<Member>& members, double limit_s) {
    // The facts that rank 0 needs about this rank, and the word by which it recognises the job.
    const Member& own = members[static_cast<std::size_t>(rank)];
    const Message hello{Message::Kind::hello,
                        0,
                        static_cast<std::uint64_t>(rank),
                        endpoint.job,
                        {own.node, std::to_string(own.process), std::to_string(members.size())}};
    const Deadline deadline(limit_s);
    // If the time runs out, this is reported: rank 0's own words, if it has refused this process
    // (it no longer answers when the others have met), or why there was no answer.
    std::string why = "no program answered";
    bool was_refused = false;
    // Rank 0 may start later than this rank, or be reachable at one of its addresses only.
    for (std::size_t attempt = 0; !deadline.has_passed(); attempt++) {
        try {
            Descriptor socket =
                connect_to(endpoint.addresses[attempt % endpoint.addresses.size()], endpoint.port);
            if (socket.number() < 0)
                throw std::runtime_error("no program answered");
            // Step 1: send who this is. Steps 2 and 3: wait until all ranks have come.
            auto connection = std::make_unique<Connection>(std::move(socket));
            connection->send(hello);
            members = wait_for_welcome(*connection, members.size(), deadline);
            // Rank 0's node is where we have called.
            for (Member& member : members)
                if (member.node == members[0].node)
                    member.address = connection->peer_address();
            return connection;
        } catch (const RefusedForGood& refusal) {
            why = refusal.what();
            break;
        } catch (const Refused& refusal) {
            why = refusal.what();
            was_refused = true;
        } catch (const std::runtime_error& error) {
            if (!was_refused)
                why = error.what();
        }
        std::this_thread::sleep_for(20ms);
    }
    throw std::runtime_error("rank " + std::to_string(rank) + " could not meet the others at " +
                             endpoint.text() + ": " + why);
}

}  // namespace ddp
