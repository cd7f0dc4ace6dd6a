// `./book explore all_reduce`: every order at once. Explores the protocols of 06_messages to
// 13_async, as they are and with one thing taken away.
#include <algorithm>
#include <cmath>
#include <iostream>

#include "common/report/main.hpp"
#include "common/report/options.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"
#include "tools/explore/each_call.hpp"

namespace {

using namespace ddp;

struct Settings {
    std::string algorithm = "all";
    std::string without = "nothing";
    int seconds = 30;
};

std::vector<ExploredCase> wanted_cases(const Settings& options) {
    std::vector<ExploredCase> cases = explored_cases();
    if (options.algorithm != "all")
        std::erase_if(cases,
                      [&](const ExploredCase& c) { return c.algorithm != options.algorithm; });
    return cases;
}

// Returns "6", or "10^17": nobody reads eighteen digits.
std::string format_orders(double orders) {
    constexpr double max_digits = 1e6;
    return orders == 0           ? "more than can be counted"
           : orders < max_digits ? format_count(static_cast<std::uint64_t>(orders))
                                 : "10^" + std::to_string(static_cast<int>(std::log10(orders)));
}

// Explores the kernels as they are. Returns the timelines of those that fail.
std::string show_all(const Settings& options) {
    Table table(
        "Every order in which flags can be read and written",
        {"protocol", "ranks", "case", "steps", "orders", "executions", "seconds", "failures"});
    std::string timelines;
    for (const ExploredCase& explored : wanted_cases(options)) {
        const ExploredResult result = explore_case(explored, std::nullopt, options.seconds);
        const cuda_on_cpu::Exploration& all = result.exploration;
        table.row({explored.algorithm, std::to_string(explored.ranks), explored.note,
                   std::to_string(all.steps), format_orders(all.orders),
                   format_count(all.executions), format_fixed(all.seconds, 2),
                   !result.failure.empty() ? result.failure
                   : all.is_complete       ? "none"
                                           : "none yet: give more --seconds"});
        timelines += result.timeline;
    }
    table.note(
        "steps: loads and stores of flags that several ranks use. orders: in which the steps of "
        "the first execution could come and be the same to every rank. executions: no two of them "
        "are the same to all ranks.");
    std::cout << table << timelines;
    return timelines;
}

// Explores them with one thing taken away after the other: two ranks are enough to fail.
void show_mistakes(const Settings& options) {
    Table table("With one thing taken away, on 2 ranks", {"protocol", "without", "found"});
    std::string timelines;
    for (const ExploredCase& explored : wanted_cases(options))
        for (const Mistake& mistake : all_mistakes()) {
            const bool is_wanted = options.without == "all" || options.without == name_of(mistake);
            if (!is_wanted || explored.ranks != 2)
                continue;
            const ExploredResult result = explore_case(explored, mistake, options.seconds);
            if (!result.has_flag)
                continue;
            table.row({explored.algorithm, name_of(mistake),
                       result.failure.empty() ? "nothing" : result.failure});
            if (options.without != "all")
                timelines += "\n" + explored.algorithm + " without the " + name_of(mistake) + "\n" +
                             result.timeline;
        }
    std::cout << table << timelines;
}

std::string found_by(const TakenAway& call) {
    if (!call.failure.empty())
        return call.failure.substr(0, call.failure.find_first_of(" :"));
    if (!call.is_complete)
        return "nothing yet: give more --seconds";
    const std::size_t reason = reason_for(call);
    return reason == 0 ? "nothing, for no known reason"
                       : "nothing: reason " + std::to_string(reason);
}

// Explores them with one call of a wait or store taken away after the other, each at its place in
// the code.
void show_calls(const Settings& options) {
    Table table("With one call taken away", {"protocol", "without", "in", "found"});
    for (const TakenAway& call : take_each_call_away(wanted_cases(options), options.seconds))
        table.row({call.algorithm, name_of(call.mistake), call.function, found_by(call)});
    for (std::size_t i = 0; i < reasons().size(); i++)
        table.note("Reason " + std::to_string(i + 1) + ": " + reasons()[i].text);
    std::cout << table;
}

int run(const Settings& options) {
    if (options.without == "each") {
        show_calls(options);
        return 0;
    }
    if (options.without == "nothing")
        return show_all(options).empty() ? 0 : 1;
    show_mistakes(options);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    Settings options;
    std::vector<std::string> algorithms{"all"}, parts{"nothing", "all", "each"};
    for (const ExploredCase& explored : explored_cases())
        if (std::ranges::count(algorithms, explored.algorithm) == 0)
            algorithms.push_back(explored.algorithm);
    for (const Mistake& mistake : all_mistakes())
        parts.push_back(name_of(mistake));
    return run_main([&] {
        Options parser("explore_all_reduce", "Every order at once: can a protocol fail?");
        parser.add_choice("--algorithm", options.algorithm, algorithms, "only this protocol");
        parser.add_choice("--without", options.without, parts,
                          "take this away, and show what fails");
        parser.add_int("--seconds", options.seconds, {1, 3600}, "the longest time for a case");
        parser.refuse({"--ranks", "--processes", "--seed", "--quick", "--csv", "--trace",
                       "--timeout", "--link", "--data"},
                      "the explorer plays 2 and 3 ranks itself, without a clock");
        parser.example("--without all", "which release, acquire and wait is needed");
        parser.example("--without each", "the same for each call in the code alone (minutes)");
        parser.example("--algorithm ring --without \"acquire of the post\"",
                       "what happens without one of them, event by event");
        parser.parse(argc, argv);
        return run(options);
    });
}
