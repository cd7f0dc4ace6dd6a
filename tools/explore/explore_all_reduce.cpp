// `./book explore all_reduce`: every order at once. Explores the protocols of 06_messages to
// 13_async, as they are or without release or acquire.
#include <algorithm>
#include <iostream>

#include "common/report/main.hpp"
#include "common/report/options.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"
#include "tools/explore/exploration.hpp"

namespace {

using namespace ddp;

struct Settings {
    std::string algorithm = "all";
    std::string without = "nothing";
    int seconds = 30;
};

std::optional<std::memory_order> order_called(const std::string& name) {
    if (name == "release")
        return std::memory_order_release;
    if (name == "acquire")
        return std::memory_order_acquire;
    return std::nullopt;
}

// Returns 1 if a protocol fails as it is.
int run(const Settings& options) {
    Table table("Every order in which flags can be read and written",
                {"protocol", "ranks", "case", "steps", "orders run", "seconds", "failures"});
    std::string failures;
    for (const ExploredCase& explored : explored_cases()) {
        if (options.algorithm != "all" && options.algorithm != explored.algorithm)
            continue;
        const ExploredResult result =
            explore_case(explored, order_called(options.without), options.seconds);
        const cuda_on_cpu::Exploration& all = result.exploration;
        table.row(
            {explored.algorithm, std::to_string(explored.ranks), explored.note,
             std::to_string(all.steps), format_count(all.executions), format_fixed(all.seconds, 2),
             !result.failure.empty() ? result.failure.substr(0, result.failure.find_first_of(" :"))
             : all.is_complete       ? "none"
                                     : "none yet: give more --seconds"});
        if (!result.failure.empty())
            failures += explored.algorithm + " on " + std::to_string(explored.ranks) + " ranks, " +
                        explored.note + ": " + result.failure + "\n";
    }
    table.note(
        "steps: loads and stores of flags that several ranks use. orders run: each stands for all "
        "orders of its steps that are the same to every rank.");
    std::cout << table << failures;
    return !failures.empty() && options.without == "nothing" ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    Settings options;
    std::vector<std::string> algorithms{"all"};
    for (const ExploredCase& explored : explored_cases())
        if (std::ranges::count(algorithms, explored.algorithm) == 0)
            algorithms.push_back(explored.algorithm);
    return run_main([&] {
        Options parser("explore_all_reduce", "Every order at once: can a protocol fail?");
        parser.add_choice("--algorithm", options.algorithm, algorithms, "only this protocol");
        parser.add_choice("--without", options.without, {"nothing", "release", "acquire"},
                          "make all of these relaxed, and show what fails");
        parser.add_int("--seconds", options.seconds, {1, 3600}, "the longest time for a case");
        parser.refuse({"--ranks", "--processes", "--seed", "--quick", "--csv", "--trace",
                       "--timeout", "--link", "--data"},
                      "the explorer plays 2 and 3 ranks itself, without a clock");
        parser.example("--algorithm ring --without acquire", "what would go wrong");
        parser.parse(argc, argv);
        return run(options);
    });
}
