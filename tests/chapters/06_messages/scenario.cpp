// A program with ranks. In its first run it does what the tests of jobs ask for.
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "tests/chapters/06_messages/neighbours.hpp"
#include "tests/chapters/support/scenarios.hpp"

namespace {

using namespace ddp;

// Two ranks send to each other, and report it: the others wait for them with a longer time-out.
void send_both(Rank& rank) {
    Peers peers(rank, 1 << 16, rank.job().timeout_s / 2);
    Stream stream;
    ArenaBuffer<float> data = peers.allocate<float>(100);
    if (rank.rank() < 2)
        peers.send(data.data(), 100, 1 - rank.rank(), stream);
    peers.synchronize(stream);
    rank.barrier();
}

// Ends all ranks but `victim` with status 1, and returns on `victim` when the launcher has seen
// their ends. They end at its signal: one that ended by itself could take the answer of the last
// call with it, if it is rank 0.
void let_others_end_first(Rank& rank, int victim) {
    std::signal(SIGUSR1, [](int) { _exit(1); });
    const std::vector<pid_t> processes = rank.all_gather(getpid());
    while (rank.rank() != victim)
        pause();
    for (const pid_t process : processes)
        if (process != getpid())
            kill(process, SIGUSR1);
    for (const pid_t process : processes)
        while (process != getpid() && kill(process, 0) == 0)
            usleep(1000);  // it is there until the launcher has asked for its status
}

// Rank `victim` does what `what` says. The others make the two calls that all should make.
void act(Rank& rank, const std::string& what, int victim) {
    rank.all_gather(std::to_string(rank.rank()));
    if (what == "kill, others first")
        let_others_end_first(rank, victim);
    if (rank.rank() == victim || (rank.rank() == 0 && what == "kill, with rank 0")) {
        // The first word says what it does.
        if (!ddp::test::misbehave(rank, what.substr(0, what.find(','))))
            return;
        if (what == "term") {
            kill(getpid(), SIGTERM);
            for (;; usleep(1000))
                rank.check();  // another thread takes the signal, and fails the run
        }
        if (what == "busy")
            sleep(60);  // the launcher must send SIGTERM, and then SIGKILL
        if (what == "exit")
            _exit(0);
        if (what == "other")
            rank.broadcast("", 0);
    }
    if (what == "stop, others end" && rank.rank() != victim)
        return;
    if (what == "stop, others busy" && rank.rank() != victim)
        sleep(60);  // as in a call of another library, which nothing interrupts
    if (what == "stop" && rank.rank() != victim)
        usleep(300'000);  // the other rank must have been silent for as long as this one waits
    if (what == "kill, others busy")
        usleep(1'700'000);  // longer than a time-out of 1 s, and less than the launcher waits
    rank.barrier();
}

void show(Rank& rank) {
    const Member& me = rank.member();
    ddp::test::show_all(rank, "world size " + std::to_string(rank.world_size()) + ", local",
                        std::to_string(me.local_rank) + "/" + std::to_string(me.local_world_size));
}

}  // namespace

int main(int argc, char** argv) {
    ddp::test::ScenarioOptions asked{"nothing"};
    int status = 0, repeat = 1;
    bool is_victim = false;
    Options parser("ranks_scenario", "What the tests of jobs ask for.");
    asked.add_to(parser);
    parser.add_int("--repeat", repeat, {1, 100}, "how often, the failure being caught");
    parser.add_int("--status", status, {0, 255}, "what rank --victim returns in the end");
    const auto first = [&](Rank& rank) {
        is_victim = is_victim || rank.rank() == asked.victim;
        if (asked.what == "neighbours")
            ddp::test::show_all(
                rank, "wrong:", std::to_string(ddp::test::count_wrong_at_neighbours(rank)));
        else if (asked.what == "queues")
            ddp::test::show_all(rank, "queues:", std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"));
        else if (asked.what == "sends")
            send_both(rank);
        else
            act(rank, asked.what, asked.victim);
    };
    const int result = ddp::test::scenario_main(argc, argv, parser, asked, [&] {
        return ddp::test::ScenarioRuns{.first = first, .at_end = show, .repeat = repeat};
    });
    if (is_victim && asked.what == "stop at the end")
        raise(SIGSTOP);
    return result == 0 && is_victim ? status : result;
}
