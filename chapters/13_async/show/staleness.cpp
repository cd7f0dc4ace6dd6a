#include "13_async/show/staleness.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numbers>

#include "12_sampler/show/index_report.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {

std::vector<OneUpdate> play(const OneParameter& model, int workers,
                            const std::vector<Action>& actions) {
    struct Worker {
        float has;
        int version = 0;
        std::vector<int> contains;
    };
    float w = model.begin;
    std::vector<int> done(static_cast<std::size_t>(workers));
    std::vector<Worker> all(done.size(), {w, 0, done});
    std::vector<OneUpdate> updates;
    for (const Action& action : actions) {
        const std::size_t number = static_cast<std::size_t>(action.worker) - 1;
        Worker& worker = all.at(number);
        const int version = static_cast<int>(updates.size());
        if (action.what == Action::reads) {
            worker = {w, version, done};
            continue;
        }
        OneUpdate update{action.worker, worker.version, version, worker.has, w, 0, worker.contains};
        w -= model.learning_rate * update.gradient(model);
        update.after = w;
        updates.push_back(update);
        done[number]++;
    }
    return updates;
}

void show_staleness() {
    constexpr Action::What reads = Action::reads, is_applied = Action::is_applied;
    const OneParameter model;
    std::vector<Action> actions;
    for (int worker : {1, 2, 1, 3, 2, 1}) {
        actions.push_back({worker, is_applied});
        actions.push_back({worker, reads});
    }
    Table table("One parameter, three workers, asynchronous: w goes from 0 towards 8",
                {"update", "worker", "has read", "computed at", "gradient", "applied to",
                 "staleness", "new w"});
    int number = 0;
    for (const OneUpdate& update : play(model, 3, actions))
        table.row({std::to_string(++number), std::to_string(update.worker),
                   "(" + joined(update.contains) + ")", format_fixed(update.computed_at, 3),
                   format_fixed(update.gradient(model), 3), format_fixed(update.before, 3),
                   std::to_string(update.staleness()), format_fixed(update.after, 3)});
    table.note("A gradient moves w by a quarter of itself.");
    table.note("Case 1, an old gradient: \"applied to\" is a different w than \"computed at\".");
    table.note(
        "Case 2, some updates are missing: \"has read\" counts the updates of workers 1, 2 and 3 "
        "that were in what the worker has read; (1 0 0) has one of three.");
    std::cout << table << "\n";
}

// ---- Old gradients and the learning rate

double distance_after(const OneParameter& model, int workers, int updates) {
    std::vector<Action> actions;
    for (int update = 0; update < updates; update++) {
        const int worker = 1 + update % workers;
        actions.push_back({worker, Action::is_applied});
        actions.push_back({worker, Action::reads});
    }
    const std::vector<OneUpdate> all = play(model, workers, actions);
    double distance = 0;
    for (auto update = all.end() - 100; update < all.end(); update++)
        if (const double now = std::abs(update->after - model.target); !(now <= distance))
            distance = now;  // or no number any more
    return distance;
}

// With gradients of that age, w(t+1) = w(t) - rate (w(t - staleness) - target). At this rate a root
// of z^(staleness + 1) - z^staleness + rate reaches the unit circle.
double largest_learning_rate(int staleness) {
    return 2 * std::sin(std::numbers::pi / (4 * staleness + 2));
}

void show_learning_rates() {
    constexpr int updates = 2000;
    constexpr double rates[] = {0.05, 0.1, 0.2, 0.4};
    std::vector<std::string> columns{"workers", "updates old", "converges below"};
    for (const double rate : rates)
        columns.push_back("at " + format_fixed(rate, 2));
    Table table("Old gradients and the learning rate: how far w comes from 8 after 1,900 updates",
                columns);
    for (const int workers : {1, 5, 17}) {
        std::vector<std::string> cells{std::to_string(workers), std::to_string(workers - 1),
                                       format_fixed(largest_learning_rate(workers - 1), 3)};
        for (const double rate : rates) {
            OneParameter model;
            model.learning_rate = static_cast<float>(rate);
            const double distance = distance_after(model, workers, updates);
            const bool is_near = distance < std::abs(model.target - model.begin);
            cells.push_back(is_near ? format_fixed(distance, 3) : "diverges");
        }
        table.row(cells);
    }
    table.note(
        "The workers take turns. Each update has the whole learning rate, not its W-th part.");
    std::cout << table << "\n";
}

}  // namespace ddp
