// What shows a mistake in a kernel: each is made in every mode that this build has, and the table
// in common/cuda_on_cpu/README.md must say what was seen. A mistake may end the process, and a
// sanitizer does, so each run has a process of its own. For the CPU only.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "tests/common/runtime/diagnoses.hpp"
#include "tests/common/runtime/mistakes.hpp"
#include "tests/support/child.hpp"

namespace ddp::test {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool address_sanitizer = true;
#else
constexpr bool address_sanitizer = false;
#endif
#if defined(DDP_SEES_RACES)
constexpr bool race_detector = true;
#else
constexpr bool race_detector = false;
#endif

// ThreadSanitizer would sleep for a second at the end of each process that it has reported on.
const std::string no_sleep = "TSAN_OPTIONS=atexit_sleep_ms=0";

// ---- One run

// Runs an example and says what came of it. A random order is tried with ten seeds.
void run(const Example& example) {
    const std::uint64_t seeds =
        cuda_on_cpu::settings().order == cuda_on_cpu::Order::random ? 10 : 1;
    bool is_right = true;
    try {
        for (std::uint64_t seed = 1; seed <= seeds && is_right; seed++) {
            const With seeded([seed](cuda_on_cpu::Settings& to) { to.seed = seed; });
            is_right = example.gives_right();
        }
        std::cout << "the result is " << (is_right ? "right" : "wrong") << std::endl;
    } catch (const std::exception& error) {
        std::cout << error.what() << std::endl;
    }
}

TEST_CASE("child makes a mistake", "[.child]") {
    for (const Example& example : mistakes())
        if (example.name == std::getenv("DDP_MISTAKE"))
            run(example);
}

TEST_CASE("child makes no mistake", "[.child]") {
    for (const Example& example : right_examples())
        run(example);
}

// ---- The table

using Row = std::map<std::string, std::string>;  // from a column's title to a cell

std::vector<std::string> cells_of(const std::string& line) {
    std::vector<std::string> cells;
    std::istringstream text(line.substr(1));
    for (std::string cell; std::getline(text, cell, '|');) {
        const std::size_t first = cell.find_first_not_of(' ');
        const std::size_t last = cell.find_last_not_of(' ');
        cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
    }
    return cells;
}

// Returns the rows of the table whose first column is "mistake in a kernel".
std::map<std::string, Row> table_of_readme() {
    std::ifstream readme(DDP_RUNTIME_README);
    std::vector<std::string> titles;
    std::map<std::string, Row> rows;
    for (std::string line; std::getline(readme, line);) {
        if (line.starts_with("| mistake in a kernel |")) {
            titles = cells_of(line);
        } else if (!titles.empty() && !line.starts_with("|")) {
            break;
        } else if (!titles.empty() && !line.starts_with("|---")) {
            const std::vector<std::string> cells = cells_of(line);
            REQUIRE(cells.size() == titles.size());
            for (std::size_t i = 0; i < cells.size(); i++)
                rows[cells[0]][titles[i]] = cells[i];
        }
    }
    return rows;
}

// Returns the cell for a run that printed `output`.
std::string cell_for(const std::string& output, const std::string& sentence) {
    if (has(output, "ThreadSanitizer: data race") ||
        has(output, "nothing puts one before the other"))
        return "race";
    if (!sentence.empty() && has(output, sentence))
        return "says";
    if (has(output, "the result is wrong"))
        return "wrong";
    return has(output, "the result is right") ? "" : "not a cell: " + output;
}

// The columns that this build can see, each with the settings that it stands for.
std::vector<std::pair<std::string, std::string>> columns() {
    if (thread_sanitizer)
        return {{"`cpu-tsan`", ""}};
    if (address_sanitizer)
        return {{"`cpu-asan`", ""}};
    if (race_detector)
        return {{"races", "races"}};
    return {{"plain", ""},
            {"reversed", "order=reversed"},
            {"random", "order=random:1"},
            {"strict", "strict"}};
}

TEST_CASE("each mistake shows where the table of the README says") {
    std::map<std::string, Row> table = table_of_readme();
    for (const Example& example : mistakes()) {
        const Row row = table.extract(example.name).mapped();
        for (const auto& [column, settings] : columns()) {
            const ChildResult child =
                run_child("child makes a mistake",
                          {"CUDA_ON_CPU=" + settings, "DDP_MISTAKE=" + example.name, no_sleep});
            INFO(child.output);
            INFO("mistake: " << example.name << ", column: " << column);
            const std::string cell = cell_for(child.output, row.at("the sentence"));
            if (row.at(column) == "sometimes")
                CHECK((cell == "race" || cell.empty()));
            else
                CHECK(cell == row.at(column));
        }
    }
    CHECK(table.empty());
}

TEST_CASE("nothing is said of kernels that are right") {
    auto modes = columns();
    if (thread_sanitizer ||
        race_detector)  // the runtime's own order of threads is not the kernel's
        modes.emplace_back("random",
                           (race_detector ? "races," : "") + std::string("order=random:1"));
    for (const auto& [column, settings] : modes) {
        INFO("settings: " << settings);
        const ChildResult child =
            run_child("child makes no mistake", {"CUDA_ON_CPU=" + settings, no_sleep});
        INFO(child.output);
        CHECK(child.exit_code == 0);
        CHECK(count(child.output, "the result is right") ==
              static_cast<int>(right_examples().size()));
    }
}

}  // namespace
}  // namespace ddp::test
