// A program with ranks that does, in its first run, what the tests of jobs ask for.
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "05_ranks/world.hpp"
#include "tests/chapters/06_messages/neighbours.hpp"
#include "tests/chapters/support/worlds.hpp"

namespace {

using namespace ddp;

// Every rank's, told by rank 0.
void show_neighbours(Rank& rank) {
    const std::string wrong = std::to_string(ddp::test::count_wrong_at_neighbours(rank));
    std::string all;
    for (const std::string& each : rank.all_gather(wrong))
        all += " " + each;
    if (rank.rank() == 0)
        std::cout << "wrong:" << all << std::endl;
}

// Two ranks send to each other; the others wait for them, for longer: they know less of why.
void send_both(Rank& rank) {
    Peers peers(rank, 1 << 16, rank.job().timeout_s / 2);
    Stream stream;
    ArenaBuffer<float> data = peers.allocate<float>(100);
    if (rank.rank() < 2)
        peers.send(data.data(), 100, 1 - rank.rank(), stream);
    peers.synchronize(stream);
    rank.barrier();
}

// Rank `who` does it; the others make the two calls that all should make.
void act(Rank& rank, const std::string& what, int who) {
    rank.all_gather(std::to_string(rank.rank()));
    if (rank.rank() == who) {
        if (what == "throw")
            throw std::runtime_error("broken on purpose");
        if (what.starts_with("kill"))
            raise(SIGKILL);
        if (what == "stop")
            raise(SIGSTOP);
        if (what == "term") {
            kill(getpid(), SIGTERM);
            for (;; usleep(1000))
                rank.check();  // another thread takes the signal, and fails the run
        }
        if (what == "busy")
            sleep(60);  // it must be told to end, and then ended
        if (what == "exit")
            _exit(0);
        if (what == "absent")
            return;
        if (what == "late")
            ddp::test::wait_for_failure(rank);
        if (what == "other")
            rank.broadcast("", 0);
    }
    if (what == "stop" && rank.rank() != who)
        usleep(300'000);  // it must have been silent for as long as we shall have waited
    if (what == "kill, others busy")
        usleep(1'700'000);  // longer than a time-out of 1 s, and less than the launcher waits
    rank.barrier();
}

void show(Rank& rank) {
    const Member& me = rank.member();
    const std::vector<std::string> all =
        rank.all_gather(std::to_string(me.local_rank) + "/" + std::to_string(me.local_world_size));
    if (rank.rank() != 0)
        return;
    std::cout << "world size " << rank.world_size() << ", local";
    for (const std::string& each : all)
        std::cout << " " << each;
    std::cout << std::endl;
}

int run(int argc, char** argv) {
    std::string what = "nothing";
    int who = 0, status = 0, repeat = 1;
    bool catches = false;
    Options options("ranks_scenario", "What the tests of jobs ask for.");
    options.add_text("--what", what, "what goes wrong");
    options.add_int("--who", who, {0, 64}, "which rank does it");
    options.add_int("--repeat", repeat, {1, 100}, "how often, the failure being caught");
    options.add_int("--status", status, {0, 255}, "what rank --who returns in the end");
    options.add_flag("--catch", catches, "the failure is shown on purpose");
    const CommonOptions common = options.parse(argc, argv);
    if (const std::optional<int> launched = launch_processes(common, argv))
        return *launched;
    World world(common);
    bool is_who = false;
    for (int i = 0; i < repeat; i++) {
        try {
            world.run([&](Rank& rank) {
                is_who = is_who || rank.rank() == who;
                if (what == "neighbours")
                    show_neighbours(rank);
                else if (what == "sends")
                    send_both(rank);
                else
                    act(rank, what, who);
            });
        } catch (const RunFailed& failure) {
            if (!catches)
                throw;
            if (world.has_rank_0())
                std::cout << "caught: " << failure.what() << std::endl;
        }
    }
    world.run(show);
    return is_who ? status : 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run(argc, argv); });
}
