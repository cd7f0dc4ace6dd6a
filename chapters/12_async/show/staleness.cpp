#include "12_async/show/staleness.hpp"

#include <algorithm>
#include <iostream>

#include "11_sampler/show/index_report.hpp"
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

namespace {

// Prints the updates; `per_update` gradients are one update.
void print_updates(const std::string& title, const OneParameter& model, int per_update,
                   const std::vector<Action>& actions, const std::vector<std::string>& notes) {
    Table table(title, {"update", "worker", "has read", "computed at", "gradient", "applied to",
                        "staleness", "new w"});
    int number = 0;
    for (const OneUpdate& update : play(model, 3, actions))
        table.row({std::to_string(1 + number++ / per_update), std::to_string(update.worker),
                   "(" + joined(update.contains) + ")", format_fixed(update.computed_at, 3),
                   format_fixed(update.gradient(model), 3), format_fixed(update.before, 3),
                   std::to_string(update.applied_to / per_update - update.read / per_update),
                   format_fixed(update.after, 3)});
    for (const std::string& note : notes)
        table.note(note);
    std::cout << table << "\n";
}

}  // namespace

void show_staleness() {
    constexpr Action::What reads = Action::reads, is_applied = Action::is_applied;
    const OneParameter model;
    std::vector<Action> synchronous, asynchronous;
    for (int step = 0; step < 2; step++) {
        for (int worker : {1, 2, 3})
            synchronous.push_back({worker, is_applied});
        for (int worker : {1, 2, 3})
            synchronous.push_back({worker, reads});
    }
    for (int worker : {1, 2, 1, 3, 2, 1}) {
        asynchronous.push_back({worker, is_applied});
        asynchronous.push_back({worker, reads});
    }
    print_updates(
        "One parameter, three workers, synchronous: w goes from 0 towards 8", model, 3, synchronous,
        {"A gradient moves w by a quarter of itself. The three gradients of an update are computed "
         "at the same w, so their order does not matter."});
    print_updates(
        "The same workers, asynchronous", model, 1, asynchronous,
        {"Case 1, an old gradient: \"applied to\" is a different w than \"computed at\".",
         "Case 2, some updates are missing: \"has read\" counts the updates of workers 1, 2 and 3 "
         "that were in what the worker has read; (1 0 0) has one of three."});
}

}  // namespace ddp
