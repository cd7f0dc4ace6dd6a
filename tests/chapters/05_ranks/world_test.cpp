// Ranks as threads of this process.
#include "05_ranks/world.hpp"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <numeric>
#include <set>
#include <sstream>
#include <thread>

#include "05_ranks/coordinator/watchdog.hpp"
#include "05_ranks/cores.hpp"
#include "common/gpu/gpu.hpp"
#include "common/gpu/thread_name.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"

namespace ddp::test {
namespace {

// Exchanges whose values encode rank and round; returns how many were wrong.
int count_wrong_exchanges(World& world, int rounds) {
    std::atomic<int> wrong = 0;
    world.run([&](Rank& rank) {
        for (int round = 0; round < rounds; round++) {
            const auto text = [&](int r) {
                return std::string(static_cast<std::size_t>(r), 'x') + std::to_string(round);
            };
            const std::vector<std::string> all = rank.all_gather(text(rank.rank()));
            for (int r = 0; r < rank.world_size(); r++)
                wrong += all[static_cast<std::size_t>(r)] != text(r);
            const int root = round % rank.world_size();
            wrong += rank.broadcast(text(rank.rank()), root) != text(root);
            rank.barrier();
        }
    });
    return wrong;
}

TEST_CASE("each of 1 to 9 ranks knows its number, and gets what the others give") {
    for (int ranks = 1; ranks <= 9; ranks++) {
        World world(thread_options(ranks));
        REQUIRE(world.world_size() == ranks);
        REQUIRE(world.has_rank_0());
        std::vector<int> seen(static_cast<std::size_t>(ranks), 0);
        std::atomic<int> wrong = 0;
        for (std::uint64_t run_id = 1; run_id <= 2; run_id++)
            world.run([&](Rank& rank) {
                seen[static_cast<std::size_t>(rank.rank())]++;
                wrong += rank.world_size() != ranks || rank.local_rank() != rank.rank() ||
                         rank.local_world_size() != ranks || rank.run_id() != run_id ||
                         rank.member().process != getpid() || rank.node().empty();
            });
        REQUIRE(seen == std::vector<int>(static_cast<std::size_t>(ranks), 2));
        REQUIRE(wrong == 0);
        REQUIRE(count_wrong_exchanges(world, 20) == 0);
    }
}

// Returns how a host thread waits for this thread's device.
unsigned int way_of_waiting() {
    unsigned int flags = 0;
    DDP_CHECK(cudaGetDeviceFlags(&flags));
    return flags & cudaDeviceScheduleMask;
}

// Returns the names of this process's threads.
std::set<std::string> names_of_threads() {
    std::set<std::string> names;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream file(thread.path() / "comm");
        std::string name;
        std::getline(file, name);
        names.insert(name);
    }
    return names;
}

TEST_CASE("threads have the names of their ranks, and of what they do for them") {
    World world(thread_options(3));
    const std::string before = thread_name();
    std::set<std::string> names;
    std::atomic<int> wrong = 0;
    for (int run = 0; run < 2; run++)
        world.run([&](Rank& rank) {
            wrong += thread_name() != "rank " + std::to_string(rank.rank());
            rank.select_device();
            Stream stream;
            Buffer<float> data(100);
            DDP_CHECK(cudaMemsetAsync(data.data(), 0, 400, stream));
            stream.synchronize();  // its thread has come so far, and has its name
            rank.barrier();
            if (rank.rank() == 1)
                names = names_of_threads();
            rank.barrier();
        });
    REQUIRE(wrong == 0);
    REQUIRE(names.contains("watchdog"));
    for (const char* rank : {"rank 0", "rank 1", "rank 2"}) {
        REQUIRE(names.contains(rank));
        if (kernels_run_on_cpu)
            REQUIRE(names.contains(rank + std::string(" stream")));
    }
    REQUIRE(thread_name() == before);
}

TEST_CASE("ranks of one process sleep while they wait for the device") {
    World alone(thread_options(1)), together(thread_options(3));
    std::atomic<int> wrong = 0;
    DDP_CHECK(cudaSetDeviceFlags(cudaDeviceScheduleAuto));
    alone.run([&](Rank& rank) {
        rank.select_device();
        wrong += way_of_waiting() != cudaDeviceScheduleAuto;
    });
    together.run([&](Rank& rank) {
        rank.select_device();
        wrong += way_of_waiting() != cudaDeviceScheduleBlockingSync;
    });
    REQUIRE(wrong == 0);
}

// Returns the cores on which the calling thread may run; none if the system does not know them.
std::vector<int> cores_of_this_thread() {
    cpu_set_t mask;
    std::vector<int> cores;
    if (sched_getaffinity(0, sizeof mask, &mask) != 0)
        return cores;
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &mask))
            cores.push_back(core);
    return cores;
}

// The cores of each rank, and of a thread that it starts.
std::vector<std::array<std::vector<int>, 2>> cores_of_ranks(int ranks) {
    std::vector<std::array<std::vector<int>, 2>> cores(static_cast<std::size_t>(ranks));
    World world(thread_options(ranks));
    world.run([&](Rank& rank) {
        auto& mine = cores[static_cast<std::size_t>(rank.rank())];
        mine[0] = cores_of_this_thread();
        std::thread([&] { mine[1] = cores_of_this_thread(); }).join();
    });
    return cores;
}

TEST_CASE("ranks that fill the cores keep to one each, and all others to none") {
    const std::vector<int> all = cores_of_this_thread();
    const auto cores = static_cast<int>(all.size());
    REQUIRE(usable_cores() == cores);
    if (cores < 2 || 2 * cores + 1 > max_ranks || !kernels_run_on_cpu) {
        std::cout << "SKIPPED: a core for each rank (needs a CPU build and a few cores)"
                  << std::endl;
        return;
    }
    for (const int ranks : {cores, 2 * cores})
        for (int rank = 0; const auto& of_rank : cores_of_ranks(ranks)) {
            const std::vector<int> one{all[static_cast<std::size_t>(rank++ % cores)]};
            CHECK(of_rank[0] == one);
            CHECK(of_rank[1] == one);
        }
    for (const int ranks : {1, cores + 1, 2 * cores + 1})
        for (const auto& of_rank : cores_of_ranks(ranks))
            CHECK(of_rank[0] == all);
    CHECK(cores_of_this_thread() == all);  // rank 0 was this thread
    World world(thread_options(cores));
    CHECK(failure_of(world, [](Rank& rank) {
              if (rank.rank() == 0)
                  throw std::runtime_error("on purpose");
          }) == "rank 0: on purpose");
    CHECK(cores_of_this_thread() == all);
}

TEST_CASE("no rank passes a barrier before all have come") {
    World world(thread_options(5));
    std::atomic<int> come = 0, early = 0;
    world.run([&](Rank& rank) {
        for (int round = 1; round <= 50; round++) {
            come++;
            rank.barrier();
            early += come < 5 * round;
            rank.barrier();
        }
    });
    REQUIRE(early == 0);
}

TEST_CASE("a rank that throws releases the others, and the next run is clean") {
    for (int thrower : {0, 1, 3}) {
        World world(thread_options(4));
        std::atomic<int> released = 0;
        for (int again = 0; again < 3; again++) {
            const std::string cause = failure_of(world, [&](Rank& rank) {
                rank.barrier();
                if (rank.rank() == thrower)
                    throw std::runtime_error("broken on purpose");
                try {
                    rank.barrier();
                } catch (const RunFailed&) {
                    released++;
                    throw;
                }
            });
            REQUIRE(cause == "rank " + std::to_string(thrower) + ": broken on purpose");
            REQUIRE(count_wrong_exchanges(world, 3) == 0);
        }
        REQUIRE(released == 9);
    }
}

TEST_CASE("the first cause by time is the one that is reported") {
    World world(thread_options(3));
    std::atomic<bool> first_has_thrown = false;
    const std::string cause = failure_of(world, [&](Rank& rank) {
        if (rank.rank() == 2) {
            first_has_thrown = true;
            throw std::runtime_error("first");
        }
        while (!first_has_thrown)
            std::this_thread::yield();
        for (;;) {  // until the failure has come round
            rank.check();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    REQUIRE(cause == "rank 2: first");
}

TEST_CASE("a rank that comes too late is named") {
    World world(thread_options(3, 2));
    const std::string cause = failure_of(world, [](Rank& rank) {
        rank.barrier();
        while (rank.rank() == 1) {  // until the others have given it up
            try {
                rank.check();
            } catch (const RunFailed&) {
                break;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        rank.all_gather("");
    });
    CAPTURE(cause);
    REQUIRE(has(cause,
                "in all_gather (call 2) for rank 1, which did not come (its last call was "
                "barrier (call 1))"));
    REQUIRE(count_wrong_exchanges(world, 3) == 0);
}

TEST_CASE("a rank that does not take part is named at once") {
    World world(thread_options(3));
    const auto start = std::chrono::steady_clock::now();
    const std::string cause = failure_of(world, [](Rank& rank) {
        if (rank.rank() != 0)
            rank.barrier();
    });
    REQUIRE(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
    REQUIRE(has(cause, "in barrier (call 1) for rank 0, which has ended its part of the run"));
}

TEST_CASE("a thread that does not come back", "[.child]") {
    World world(thread_options(2, 0.05));
    world.run([](Rank& rank) {
        while (rank.rank() == 1)
            std::this_thread::sleep_for(std::chrono::seconds(1));
        throw std::runtime_error("broken on purpose");
    });
}

TEST_CASE("a thread that does not come back from a failed run is not waited for for ever",
          "[.weekly]") {
    const ChildResult child = run_child("a thread that does not come back", {}, 60);
    CAPTURE(child.output);
    REQUIRE(child.exit_code == 1);
    REQUIRE(
        has(child.output,
            "still running: rank 1 has not come back from a run that has failed (rank 0: broken on "
            "purpose), and is waited for, "));
    REQUIRE(has(child.output,
                "error: rank 0: broken on purpose; since then rank 1 has not come back\n"));
}

TEST_CASE("other roots are other calls, and there is no rank beyond the last") {
    World world(thread_options(3));
    REQUIRE(failure_of(world, [](Rank& rank) {
                rank.broadcast("", rank.rank() == 1 ? 1 : 0);
            }).find("broadcast from rank 1 (call 1)") != std::string::npos);
    for (int root : {-1, 3})
        REQUIRE(failure_of(world, [&](Rank& rank) { rank.broadcast("", root); })
                    .find(": broadcast from rank " + std::to_string(root) +
                          ": the ranks are 0 to 2") != std::string::npos);
}

// Counts how often it is stopped, and fails as soon as it is asked to.
struct Worker : Abortable {
    std::atomic<int> stops = 0;
    std::atomic<bool> complains = false;
    void stop() noexcept override { stops++; }
    std::string error() override { return complains ? "a kernel has failed" : ""; }
};

TEST_CASE("what runs beside a rank is stopped with it, and may be what fails") {
    World world(thread_options(3));
    std::vector<Worker> workers(3);
    const std::string cause = failure_of(world, [&](Rank& rank) {
        Worker& worker = workers[static_cast<std::size_t>(rank.rank())];
        rank.add(worker);
        rank.barrier();
        worker.complains = rank.rank() == 1;
        try {
            if (rank.rank() != 1)
                rank.all_gather("");
            while (worker.stops == 0)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
        } catch (const RunFailed&) {
        }
        rank.remove(worker);
    });
    REQUIRE(cause == "rank 1: a kernel has failed");
    for (const Worker& worker : workers)
        REQUIRE(worker.stops >= 1);
}

TEST_CASE("what is kept until the run ends is there until every rank has ended it") {
    World world(thread_options(4));
    std::atomic<int> alive = 0, least = 4;
    struct Thing {
        std::atomic<int>& alive;
        explicit Thing(std::atomic<int>& count) : alive(count) { alive++; }
        ~Thing() { alive--; }
    };
    world.run([&](Rank& rank) {
        rank.keep_until_run_ends(std::make_shared<Thing>(alive));
        rank.barrier();
        std::this_thread::sleep_for(std::chrono::milliseconds(20 * rank.rank()));
        if (alive < least)
            least = alive.load();
    });
    REQUIRE(least == 4);
    REQUIRE(alive == 0);
}

TEST_CASE("what a part of a run keeps is there until every rank has ended the part") {
    World world(thread_options(4));
    std::atomic<int> alive = 0, least = 4, max_after = 0;
    const auto keep_one = [&](Rank& rank) {
        alive++;
        rank.keep_until_run_ends(std::shared_ptr<void>(nullptr, [&](void*) { alive--; }));
    };
    const auto raise_to = [](std::atomic<int>& most, int value) {
        for (int seen = most; seen < value && !most.compare_exchange_weak(seen, value);) {
        }
    };
    world.run([&](Rank& rank) {
        keep_one(rank);
        rank.barrier();
        rank.run_part([&] {
            keep_one(rank);
            rank.barrier();
            if (rank.rank() == 3 && alive != 8)
                least = 0;
        });
        rank.barrier();
        raise_to(max_after, alive);
        rank.barrier();
    });
    REQUIRE(least == 4);
    REQUIRE(max_after == 4);  // what was kept before the part is kept on
    REQUIRE(alive == 0);
    REQUIRE(has(failure_of(world,
                           [&](Rank& rank) {
                               rank.run_part([&] {
                                   keep_one(rank);
                                   rank.barrier();
                                   if (rank.rank() == 3)
                                       throw std::runtime_error("a part has failed");
                               });
                           }),
                "a part has failed"));
    REQUIRE(alive == 0);
}

TEST_CASE("a process that does not report the failure waits for the one that does") {
    const pid_t reporter = fork();
    if (reporter == 0) {
        usleep(200'000);
        _exit(1);
    }
    RunFailed("broken", false, reporter).wait_until_reported();
    REQUIRE(waitpid(reporter, nullptr, WNOHANG) == reporter);
    const auto begin = std::chrono::steady_clock::now();
    RunFailed("broken", false, reporter).wait_until_reported();  // it is gone
    REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(900));
}

// How a process ends that gets SIGTERM right after its Sigterm was destroyed, normally or by an
// exception.
int status_after_sigterm(bool throws) {
    const pid_t child = fork();
    if (child == 0) {
        try {
            const Sigterm sigterm;
            if (throws)
                throw 1;
        } catch (int) {
        }
        kill(getpid(), SIGTERM);
        _exit(7);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    return status;
}

TEST_CASE("SIGTERM does not end a process that has a failure to report") {
    const int failing = status_after_sigterm(true);
    REQUIRE(WIFEXITED(failing));
    REQUIRE(WEXITSTATUS(failing) == 7);
    const int well = status_after_sigterm(false);
    REQUIRE(WIFSIGNALED(well));
    REQUIRE(WTERMSIG(well) == SIGTERM);
}

// Returns why a run has failed, whichever rank's process is to report it.
std::string failure_of_guest(World& world, const std::function<void(Rank&)>& work) {
    try {
        world.run(work);
        return "";
    } catch (const RunFailed& failure) {
        return failure.what();
    }
}

// Returns what happens on SIGTERM in the calling thread: the handler, and whether it waits.
std::pair<void (*)(int), bool> on_sigterm() {
    sigset_t blocked;
    struct sigaction action {};
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    sigaction(SIGTERM, nullptr, &action);
    return {action.sa_handler, sigismember(&blocked, SIGTERM) == 1};
}

// Returns whether rank 0 still listens, at 127.0.0.1 alone, and refuses a second rank 1. `text` is
// what its guest has told the others.
bool refuses_a_second_rank_1(const std::string& text, int ranks) {
    RendezvousEndpoint place{{"127.0.0.1"}, 0, ""};
    std::istringstream(text.substr(text.find('\n'))) >> place.job >> place.port;
    std::vector<Member> members(static_cast<std::size_t>(ranks));
    members[1].node = "another";
    try {
        join_ranks(place, 1, members, 10);
        return false;
    } catch (const std::runtime_error& error) {
        return std::string(error.what()).find("rank 1 is here already: ") != std::string::npos &&
               connect_to("127.0.0.2", place.port).number() < 0;
    }
}

TEST_CASE("a rank in another program leaves its signals and cores alone") {
    const int cores = usable_cores(),
              ranks = cores < 2 || cores > 16 ? 3 : cores;  // would be bound
    const std::vector<int> all = cores_of_this_thread();
    const auto sigterm = on_sigterm();
    std::vector<std::string> texts(static_cast<std::size_t>(ranks));
    std::barrier all_have_written(ranks);
    std::atomic<int> wrong = 0, failed_alike = 0;
    {
        std::vector<std::jthread> guests;
        for (int r = 0; r < ranks; r++)
            guests.emplace_back([&, r] {
                World world(r, ranks, 20, [&](const std::string& text) {
                    texts[static_cast<std::size_t>(r)] = text;
                    all_have_written.arrive_and_wait();
                    return texts;
                });
                wrong += world.world_size() != ranks || !world.job().has_processes;
                wrong += count_wrong_exchanges(world, 3);
                world.run([&](Rank& rank) {
                    wrong += rank.rank() != r || cores_of_this_thread() != all ||
                             on_sigterm() != sigterm;
                    wrong += r == 0 && !refuses_a_second_rank_1(texts[0], ranks);
                });
                const std::string cause = failure_of_guest(world, [&](Rank& rank) {
                    if (rank.rank() == 1)
                        throw std::runtime_error("nothing is left");
                    rank.barrier();
                });
                failed_alike += cause.starts_with("rank 1 (process " + std::to_string(getpid())) &&
                                cause.ends_with("): nothing is left");
            });
    }
    REQUIRE(wrong == 0);
    REQUIRE(failed_alike == ranks);
    REQUIRE(on_sigterm() == sigterm);
}

TEST_CASE("requests that make no sense") {
    for (int ranks : {0, -3, 65, 9999})
        REQUIRE_THROWS_WITH(World(thread_options(ranks)),
                            "--ranks " + std::to_string(ranks) +
                                " is out of range: one machine takes 1 to 64 ranks.");
}

}  // namespace
TEST_CASE("typed exchanges: every rank's value by rank, and bytes of another build are refused") {
    struct Pair {
        int rank;
        double half;
    };
    World world(thread_options(3));
    std::atomic<int> wrong = 0;
    world.run([&](Rank& rank) {
        const std::vector<Pair> all = rank.all_gather(Pair{rank.rank(), rank.rank() / 2.0});
        for (int r = 0; r < 3; r++)
            wrong += all.at(static_cast<std::size_t>(r)).rank != r ||
                     all[static_cast<std::size_t>(r)].half != r / 2.0;
        wrong += rank.broadcast(10 + rank.rank(), 2) != 12;
        wrong += rank.mean_over_ranks(rank.rank()) != 1;
        wrong += rank.max_over_ranks(-rank.rank()) != 0;
    });
    REQUIRE(wrong == 0);
    const std::string cause = failure_of(world, [](Rank& rank) {
        if (rank.rank() == 1)
            rank.all_gather(std::string("ten bytes!"));
        else
            rank.all_gather(rank.rank());
    });
    REQUIRE(has(cause, "a rank has sent 10 bytes where 4 were expected"));
}

}  // namespace ddp::test
