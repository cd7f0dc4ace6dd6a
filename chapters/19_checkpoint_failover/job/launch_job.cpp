#include "19_checkpoint_failover/job/launch_job.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <thread>

#include "05_ranks/environment.hpp"
#include "05_ranks/rendezvous.hpp"
#include "05_ranks/support/mpi_start.hpp"
#include "19_checkpoint_failover/job/status_line.hpp"
#include "common/report/options.hpp"

namespace ddp {
namespace {

// Returns whether the node answers a TCP connection within a second.
bool answers(const std::string& node, int port) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(node.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
        return false;
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
    const Descriptor socket(
        ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (connect(socket.number(), found->ai_addr, found->ai_addrlen) == 0)
        return true;
    if (errno != EINPROGRESS)
        return errno == ECONNREFUSED;
    pollfd ready{socket.number(), POLLOUT, 0};
    if (poll(&ready, 1, 1000) != 1)
        return false;
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &size);
    return error == 0 || error == ECONNREFUSED;  // a node that refuses is there
}

// Makes mpirun notice within seconds, not minutes, that a node no longer answers. Variables that
// the user has set are kept.
void make_mpirun_notice_silence() {
    setenv("OMPI_MCA_oob_tcp_keepalive_time", "2", 0);
    setenv("OMPI_MCA_oob_tcp_keepalive_intvl", "1", 0);
    setenv("OMPI_MCA_oob_tcp_keepalive_probes", "3", 0);
}

}  // namespace

std::vector<NodeSlots> parse_nodes(const std::string& text) {
    std::vector<NodeSlots> nodes;
    std::istringstream list(text);
    for (std::string word; std::getline(list, word, ',');) {
        NodeSlots node{word.substr(0, word.find(':')), 1};
        const std::string slots = word.substr(std::min(word.size(), node.name.size()));
        const char* end = slots.data() + slots.size();
        const bool is_number =
            slots.empty() ||
            (slots.size() > 1 && std::from_chars(slots.data() + 1, end, node.slots).ptr == end);
        if (node.name.empty() || !is_number || node.slots < 1 || node.slots > max_ranks)
            throw OptionError(
                "--hosts needs names of nodes with commas between them, and after "
                "a colon the number of ranks on a node, such as node0,node1:2; not '" +
                text + "'.");
        nodes.push_back(node);
    }
    return nodes;
}

std::vector<NodeSlots> nodes_that_answer(const std::vector<NodeSlots>& nodes, int port) {
    std::vector<char> is_there(nodes.size());
    std::vector<std::thread> threads;  // all are asked at once
    for (std::size_t i = 0; i < nodes.size(); i++)
        threads.emplace_back([&, i] { is_there[i] = answers(nodes[i].name, port); });
    for (std::thread& thread : threads)
        thread.join();
    std::vector<NodeSlots> alive;
    for (std::size_t i = 0; i < nodes.size(); i++)
        if (is_there[i])
            alive.push_back(nodes[i]);
    return alive;
}

std::vector<std::string> job_command(Launcher launcher, int ranks,
                                     const std::vector<std::string>& arguments,
                                     const std::vector<NodeSlots>& nodes) {
    const std::string program = std::filesystem::read_symlink("/proc/self/exe");
    std::vector<std::string> command;
    if (launcher == Launcher::mpirun) {
        allow_mpirun();
        make_mpirun_notice_silence();
        std::string names;
        for (const NodeSlots& node : nodes)
            names += (names.empty() ? "" : ",") + node.name + ":" + std::to_string(node.slots);
        // To other nodes mpirun passes on only the variables that it is told.
        command = {"mpirun", "-n", std::to_string(ranks), "-x", supervised_variable};
        if (nodes.empty())
            command.insert(command.end(), {"--oversubscribe", "--bind-to", "none"});
        else
            command.insert(command.end(), {"--host", names});
        command.push_back(program);
    } else {
        const char* how = launcher == Launcher::threads ? "--ranks" : "--processes";
        command = {program, how, std::to_string(ranks)};
    }
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
}

}  // namespace ddp
