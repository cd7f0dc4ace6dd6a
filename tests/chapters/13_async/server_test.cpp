// The server and its workers, with one parameter. Whatever the order of a run, its log is replayed.
#include "13_async/server.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "11_data_parallel/replica.hpp"
#include "13_async/show/staleness.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

struct Trial {
    ServerLog log;
    float w = 0;             // the server's parameter at the end
    std::vector<int> calls;  // how often each rank called compute
};

void pause() {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// `before` is called in each step of each worker.
using Before = std::function<void(Rank& rank, int step)>;

// `timeout_s` is the time-out of the kernels; by default that of the job.
void take_part(Rank& rank, const ServerOptions& options, const Before& before, Trial& trial,
               std::optional<double> timeout_s = {}) {
    const OneParameter model;
    auto& device = make_run_scoped<Device>(rank, std::size_t{1} << 20);
    Peers peers(rank, 1 << 16, timeout_s);
    MessageBuffers buffers(peers, device, 1);
    auto& loss = make_run_scoped<Tensor>(rank, device, Shape{1});
    buffers.values.copy_from(std::vector<float>{rank.rank() == 0 ? model.begin : -1000});
    std::optional<Server> server;
    if (rank.rank() == 0)
        server.emplace(peers, device, buffers, model.learning_rate, options);
    rank.barrier();
    if (server) {
        trial.log = server->serve();
        trial.w = buffers.values.to_host()[0];
    } else if (rank.rank() <= options.workers) {
        trial.calls[static_cast<std::size_t>(rank.rank())] =
            run_worker(peers, device, buffers, [&](int step) {
                if (before)
                    before(rank, step);
                const float gradient = buffers.values.to_host()[0] - model.target;
                buffers.gradients.copy_from(std::vector<float>{gradient});
                loss.copy_from(std::vector<float>{gradient * gradient / 2});
                return loss;
            });
    }
    rank.barrier();
}

Trial train(int ranks, const ServerOptions& options, const Before& before = {}) {
    World world(thread_options(ranks));
    Trial trial;
    trial.calls.resize(static_cast<std::size_t>(ranks));
    world.run([&](Rank& rank) { take_part(rank, options, before, trial); });
    return trial;
}

// Returns the actions of a server and its workers, from its log.
std::vector<Action> actions_of(const ServerLog& log) {
    const auto each_update = static_cast<std::size_t>(
        std::ranges::count(log.applied, 0, [](const Applied& each) { return each.applied_to; }));
    std::vector<std::vector<int>> readers(log.applied.size() + 1);  // by gradients before
    for (const Applied& each : log.applied)
        readers.at(static_cast<std::size_t>(each.read) * each_update).push_back(each.worker);
    std::vector<Action> actions;
    for (std::size_t i = 0; i < log.applied.size(); i++) {
        for (int reader : readers[i])
            actions.push_back({reader, Action::reads});
        actions.push_back({log.applied[i].worker, Action::is_applied});
    }
    return actions;
}

// Returns "" if replaying the log on one thread gives the server's numbers to the bit.
std::string difference_from_replay(const Trial& trial, const std::vector<Action>& actions,
                                   int workers) {
    const OneParameter model;
    const std::vector<OneUpdate> replay = play(model, workers, actions);
    if (replay.size() != trial.log.applied.size())
        return "other numbers of updates";
    for (std::size_t i = 0; i < replay.size(); i++) {
        const float gradient = replay[i].gradient(model);
        if (trial.log.applied[i].loss != static_cast<double>(gradient * gradient / 2))
            return "another loss at update " + std::to_string(i);
    }
    return replay.empty() || replay.back().after == trial.w ? "" : "another parameter at the end";
}

}  // namespace

TEST_CASE("server: every gradient is applied once, and the replay gives the same bits") {
    for (int ranks : {2, 3, 4, 5})
        for (int gradients : {0, 1, 12, 60}) {
            const ServerOptions cases[] = {{ranks - 1, gradients, false, {}},
                                           {ranks - 1, gradients, false, 0},
                                           {ranks - 1, gradients, false, 1},
                                           {ranks - 1, gradients * (ranks - 1), true, {}}};
            for (const ServerOptions& options : cases) {
                CAPTURE(ranks, gradients, options.is_synchronous, options.bound.value_or(-1));
                const Trial trial = train(ranks, options);
                REQUIRE(what_is_wrong(trial.log, options) == "");
                int calls = 0;
                for (int each : trial.calls)
                    calls += each;
                REQUIRE(calls == options.gradients);
                std::vector<Action> actions = actions_of(trial.log);
                REQUIRE(difference_from_replay(trial, actions, ranks - 1) == "");
                if (options.is_synchronous)
                    REQUIRE(trial.log.max_staleness() == 0);
                if (actions.empty())
                    continue;
                // If the server had applied the first gradient twice, the replay would show it.
                const auto first = std::ranges::find(actions, Action::is_applied, &Action::what);
                actions.insert(first, *first);
                Trial twice = trial;
                twice.log.applied.insert(twice.log.applied.begin(), trial.log.applied[0]);
                REQUIRE(difference_from_replay(twice, actions, ranks - 1) != "");
            }
        }
}

TEST_CASE("server: with one worker asynchronous and synchronous are plain descent, to the bit") {
    const OneParameter model;
    float w = model.begin;
    for (int step = 0; step < 30; step++)
        w -= model.learning_rate * (w - model.target);
    for (int ranks : {2, 4}) {  // the others have nothing to do
        REQUIRE(train(ranks, {1, 30, false, {}}).w == w);
        REQUIRE(train(ranks, {1, 30, true, {}}).w == w);
        REQUIRE(train(ranks, {1, 30, false, 3}).w == w);
    }
}

TEST_CASE("server: synchronous training has the same bits every time, and nothing is stale") {
    const Trial first = train(4, {3, 30, true, {}});
    REQUIRE(first.log.updates() == 10);
    REQUIRE(first.log.mean_staleness() == 0);
    for (std::size_t i = 0; i < 30; i++)
        REQUIRE(first.log.applied[i].worker == static_cast<int>(i % 3) + 1);
    REQUIRE(train(4, {3, 30, true, {}}).w == first.w);
}

TEST_CASE("server: a worker gets as far ahead as the bound allows, and no further") {
    for (int ranks : {3, 4})
        for (int bound : {0, 1, 2, 3}) {
            std::atomic<int> begun = -1;
            const ServerOptions options{ranks - 1, 40, false, bound};
            const Trial trial = train(ranks, options, [&](Rank& rank, int step) {
                if (rank.rank() == 1)
                    begun = step;
                // Rank 2 is in its first step until rank 1 can go no further.
                while (rank.rank() == 2 && step == 0 && begun < bound) {
                    rank.check();
                    pause();
                }
            });
            CAPTURE(ranks, bound);
            REQUIRE(what_is_wrong(trial.log, options) == "");
            REQUIRE(trial.log.max_ahead == bound);
            if (bound > 0)  // the bound of another one is overstepped
                REQUIRE(what_is_wrong(trial.log, {ranks - 1, 40, false, bound - 1}) != "");
        }
}

TEST_CASE("server: a gradient is as old as the number of gradients applied since") {
    constexpr int late = 10;
    std::atomic<int> begun = -1;
    const ServerOptions options{2, 40, false, {}};
    const Trial trial = train(3, options, [&](Rank& rank, int step) {
        if (rank.rank() == 1)
            begun = step;
        while (rank.rank() == 2 && step == 0 && begun < late) {
            rank.check();
            pause();
        }
    });
    REQUIRE(what_is_wrong(trial.log, options) == "");
    REQUIRE(trial.log.max_staleness() >= late);
    REQUIRE(trial.log.max_ahead >= late);
    REQUIRE(difference_from_replay(trial, actions_of(trial.log), 2) == "");
}

TEST_CASE("server: an impossible log is recognized") {
    const ServerOptions options{2, 4, false, 1};
    const ServerLog right{{{1, 0, 0, 0}, {2, 0, 0, 1}, {1, 1, 1, 2}, {2, 1, 2, 3}}, 1};
    REQUIRE(what_is_wrong(right, options) == "");
    ServerLog wrong = right;
    wrong.applied[2] = wrong.applied[0];
    REQUIRE(what_is_wrong(wrong, options) ==
            "worker 1's gradient 0 was applied where its gradient 1 was due");
    wrong = right;
    wrong.applied.pop_back();
    REQUIRE(what_is_wrong(wrong, options) == "3 gradients were applied, not 4");
    wrong = right;
    wrong.max_ahead = 2;
    REQUIRE(what_is_wrong(wrong, options) ==
            "a worker was 2 steps ahead of the slowest, and the bound is 1");
    wrong = right;
    wrong.applied[3].read = -1;
    REQUIRE(what_is_wrong(wrong, options) ==
            "a gradient was 4 updates old, and the bound allows 3");
}

TEST_CASE("server: a worker that throws ends the run, even if the others wait") {
    for (int ranks : {2, 3, 4})
        for (bool is_synchronous : {false, true}) {
            World world(thread_options(ranks));
            Trial trial;
            trial.calls.resize(static_cast<std::size_t>(ranks));
            const int gradients = 1000 * (ranks - 1), victim = ranks - 1;
            const std::string failure = failure_of(world, [&](Rank& rank) {
                take_part(
                    rank, {ranks - 1, gradients, is_synchronous, {}},
                    [&](Rank& worker, int step) {
                        if (worker.rank() == victim && step == 2)
                            throw std::runtime_error("broken on purpose");
                    },
                    trial);
            });
            REQUIRE(failure == "rank " + std::to_string(victim) + ": broken on purpose");
        }
}

TEST_CASE("server: workers that never answer are named when the time is up") {
    World world(thread_options(3));
    Trial trial;
    trial.calls.resize(3);
    const std::string failure = failure_of(world, [&](Rank& rank) {
        take_part(
            rank, {2, 100, false, {}},
            [&](Rank& worker, int) {
                for (;;) {
                    worker.check();
                    pause();
                }
            },
            trial, 1.0);
    });
    CAPTURE(failure);
    REQUIRE(has(failure, "rank 0: waited 1.0 s in operation 3, wait for mail in 2 mailboxes"));
    REQUIRE(has(failure, "; rank 1 has ended operation 1, receive of 2 float from rank 0"));
}

TEST_CASE("server: impossible options") {
    const auto refusal = [](int ranks, const ServerOptions& options) {
        World world(thread_options(ranks));
        Trial trial;
        trial.calls.resize(static_cast<std::size_t>(ranks));
        return failure_of(world, [&](Rank& rank) { take_part(rank, options, {}, trial); });
    };
    REQUIRE(refusal(2, {2, 4, false, {}}) ==
            "rank 0: rank 0 can have mailboxes for 1 to 1 workers, not rank 0 for 2");
    REQUIRE(has(refusal(2, {1, 4, false, -1}), "no negative bound"));
}

}  // namespace ddp::test
