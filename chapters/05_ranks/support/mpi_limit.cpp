#include "05_ranks/support/mpi_limit.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <utility>

#include "common/report/units.hpp"

namespace ddp {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// The lowest rank that waits is the only one to speak, since mpirun ends the others within two
// seconds of its end. Each rank counts those before it in good time. Other nodes are asked earlier:
// they answer within a second, and it takes two to see that one of their ports is closed. Where one
// of them will speak, mpirun has longer to end this node's ranks.
constexpr Seconds turn = 3s, good_time = 1s, ask_time = 4s;

// A rank of this node, as the system knows it.
struct LocalRank {
    int rank;
    std::string process;
    char state;  // R, S or D; T if it is stopped, Z if it has ended

    std::string name() const {
        return "rank " + std::to_string(rank) + " (process " + process + ")";
    }
};

// Returns "" for what cannot be read: a process may end at any time.
std::string bytes_of_file(const std::filesystem::path& path) {
    std::ostringstream bytes;
    bytes << std::ifstream(path).rdbuf();
    return bytes.str();
}

// Returns the rank that mpirun or srun has given a process, from its environment.
std::optional<int> rank_of(const std::filesystem::path& process) {
    std::istringstream variables(bytes_of_file(process / "environ"));
    for (std::string variable; std::getline(variables, variable, '\0');)
        for (const std::string name : {"OMPI_COMM_WORLD_RANK=", "PMIX_RANK="})
            if (variable.starts_with(name))
                return std::atoi(variable.substr(name.size()).c_str());
    return std::nullopt;
}

// Returns the ranks of this node, this one among them: the same process has started them.
std::vector<LocalRank> local_ranks() {
    std::vector<LocalRank> ranks;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        // "4711 (name of the program) T 4700 ...": its state, and its parent
        const std::string status = bytes_of_file(entry.path() / "stat");
        char state = 0;
        pid_t parent = 0;
        std::istringstream(status.substr(std::min(status.size(), status.rfind(')') + 1))) >>
            state >> parent;
        const std::string process = entry.path().filename().string();
        if (parent != getppid() || std::isdigit(static_cast<unsigned char>(process[0])) == 0)
            continue;
        if (const std::optional<int> rank = rank_of(entry.path()))
            ranks.push_back({*rank, process, state});
    }
    return ranks;
}

std::string name_of_stopped(const std::vector<LocalRank>& ranks) {
    const auto stopped = std::ranges::find(ranks, 'T', &LocalRank::state);
    return stopped == ranks.end() ? "" : stopped->name();
}

// Returns how many ranks of this node come before rank `own` and can speak.
std::ptrdiff_t living_before(int own, const std::vector<LocalRank>& ranks) {
    return std::ranges::count_if(ranks, [&](const LocalRank& each) {
        return each.rank < own && each.state != 'T' && each.state != 'Z';
    });
}

bool is_known(const std::shared_future<Silence>& silence) {
    return silence.valid() && silence.wait_for(0s) == std::future_status::ready;
}

// Returns whether no other node is known to have a lower rank that waits, too, and will speak.
bool others_let_speak(int own, const std::shared_future<Silence>& silence) {
    if (!silence.valid())
        return true;
    return is_known(silence) &&
           std::ranges::none_of(silence.get().others,
                                [&](const NodeReport& other) { return other.rank < own; });
}

[[noreturn]] void end_with(const std::string& sentence) {
    std::cerr << "error: " + sentence + "\n" << std::flush;
    std::_Exit(1);
}

}  // namespace

MpiLimit::MpiLimit(std::string call, double limit_s, double longest_s, AskRanks ask)
    : ask_(std::move(ask)), sent_before_(ask_ ? sent_bytes() : SentBytes()) {
    if (limit_s > 0)
        thread_ = std::thread([this, call = std::move(call), limit_s, longest_s] {
            watch(call, limit_s, longest_s);
        });
}

MpiLimit::~MpiLimit() {
    {
        const std::lock_guard lock(mutex_);
        is_over_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable())
        thread_.join();
    if (silence_.valid())  // the call was late, but MPI may be used, and ended, from here on
        silence_.wait_for(turn);
}

void MpiLimit::watch(const std::string& call, double limit_s, double longest_s) {
    constexpr auto period = 100ms;
    std::ptrdiff_t before = 0;
    const int own = rank_of("/proc/self").value_or(0);
    Clock::time_point begin = Clock::now(), last = begin;
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, period, [this] { return is_over_; })) {
        const Clock::time_point now = Clock::now();
        if (now - std::exchange(last, now) > 10 * period)  // this process was stopped itself
            begin = now;
        const Seconds waited = now - begin;
        if (waited + (ask_ ? ask_time : good_time) < Seconds(limit_s))
            continue;
        const std::vector<LocalRank> ranks = local_ranks();
        before = std::max(before, living_before(own, ranks));
        const std::string stopped = name_of_stopped(ranks);
        if (ask_ && !silence_.valid() && before == 0)
            ask_others(own, stopped);
        const Seconds limit(stopped.empty() ? longest_s : limit_s);
        const Seconds late = waited - limit - static_cast<double>(before) * turn;
        if (late > 0s &&
            (others_let_speak(own, silence_) || late > (is_known(silence_) ? 3 * turn : turn)))
            end_with("rank " + std::to_string(own) + " waited " + format_fixed(waited.count(), 1) +
                     " s in " + call + " for " +
                     (!stopped.empty()     ? stopped + ", which is stopped"
                      : is_known(silence_) ? to_string(silence_.get())
                                           : "the other ranks: were all of them started?"));
    }
}

// Begins to find out what other nodes know. Neither the launcher nor a network needs to answer, so
// nothing waits for this thread.
void MpiLimit::ask_others(int rank, const std::string& stopped) {
    std::packaged_task<Silence()> task(
        [ask = ask_, own = report_of_node(rank, stopped, sent_before_)] {
            return silence_of(own, ask(line_of(own)));
        });
    silence_ = task.get_future();
    std::thread(std::move(task)).detach();
}

void wait_until_ended(const std::vector<pid_t>& processes, double limit_s) {
    const auto has_ended = [&](const LocalRank& each) {
        return each.state == 'Z' || std::ranges::count(processes, std::stoi(each.process)) == 0;
    };
    const Clock::time_point begin = Clock::now();
    for (bool is_over = limit_s == 0; !is_over; std::this_thread::sleep_for(5ms)) {
        std::vector<LocalRank> left = local_ranks();
        std::erase_if(left, has_ended);
        is_over = left.empty() || Clock::now() - begin > Seconds(limit_s);
        if (const std::string stopped = name_of_stopped(left); is_over && !stopped.empty())
            end_with(stopped + " is stopped, and the job cannot end without it");
    }
}

}  // namespace ddp
