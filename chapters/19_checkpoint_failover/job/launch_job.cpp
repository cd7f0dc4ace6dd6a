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
#include "05_ranks/support/mpirun.hpp"
#include "19_checkpoint_failover/job/status_line.hpp"
#include "common/report/options.hpp"

namespace ddp {
namespace {

// Returns whether the host answers a TCP connection within a second.
bool answers(const std::string& host, int port) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
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
    return error == 0 || error == ECONNREFUSED;  // a host that refuses is there
}

// Makes mpirun notice within seconds, not minutes, that a host no longer answers. Variables that
// the user has set are kept.
void make_mpirun_notice_silence() {
    setenv("OMPI_MCA_oob_tcp_keepalive_time", "2", 0);
    setenv("OMPI_MCA_oob_tcp_keepalive_intvl", "1", 0);
    setenv("OMPI_MCA_oob_tcp_keepalive_probes", "3", 0);
}

}  // namespace

std::vector<HostSlots> parse_hosts(const std::string& text) {
    std::vector<HostSlots> hosts;
    std::istringstream list(text);
    for (std::string word; std::getline(list, word, ',');) {
        HostSlots host{word.substr(0, word.find(':')), 1};
        const std::string slots = word.substr(std::min(word.size(), host.name.size()));
        const char* end = slots.data() + slots.size();
        const bool is_number =
            slots.empty() ||
            (slots.size() > 1 && std::from_chars(slots.data() + 1, end, host.slots).ptr == end);
        if (host.name.empty() || !is_number || host.slots < 1 || host.slots > most_ranks)
            throw OptionError(
                "--hosts needs names of hosts with commas between them, and behind "
                "a colon how many ranks a host takes, such as node0,node1:2; not '" +
                text + "'.");
        hosts.push_back(host);
    }
    return hosts;
}

std::vector<HostSlots> hosts_that_answer(const std::vector<HostSlots>& hosts, int port) {
    std::vector<char> is_there(hosts.size());
    std::vector<std::thread> threads;  // all are asked at once
    for (std::size_t i = 0; i < hosts.size(); i++)
        threads.emplace_back([&, i] { is_there[i] = answers(hosts[i].name, port); });
    for (std::thread& thread : threads)
        thread.join();
    std::vector<HostSlots> alive;
    for (std::size_t i = 0; i < hosts.size(); i++)
        if (is_there[i])
            alive.push_back(hosts[i]);
    return alive;
}

std::vector<std::string> job_command(Launcher launcher, int ranks,
                                     const std::vector<std::string>& arguments,
                                     const std::vector<HostSlots>& hosts) {
    const std::string program = std::filesystem::read_symlink("/proc/self/exe");
    std::vector<std::string> command;
    if (launcher == Launcher::mpirun) {
        allow_mpirun();
        make_mpirun_notice_silence();
        std::string names;
        for (const HostSlots& host : hosts)
            names += (names.empty() ? "" : ",") + host.name + ":" + std::to_string(host.slots);
        // To other hosts mpirun passes on only the variables that it is told.
        command = {"mpirun", "-n", std::to_string(ranks), "-x", supervised_variable};
        if (hosts.empty())
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
