// The timeline of a step, as the report prints it and as the files keep it.
#include "15_overlap/show/timeline_report.hpp"

#include <functional>
#include <iostream>
#include <sstream>

#include "common/report/csv.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/common/report/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Returns what `work` prints.
std::string printed(const std::function<void()>& work) {
    std::ostringstream text;
    std::streambuf* const before = std::cout.rdbuf(text.rdbuf());
    work();
    std::cout.rdbuf(before);
    return text.str();
}

}  // namespace

TEST_CASE("timeline: the report says what was hidden, and the files begin at 0") {
    const std::vector<StreamSpan> spans{
        {0, "compute", "forward", 100.0, 100.010},
        {0, "compute", "backward to x", 100.010, 100.030},
        {0, "compute", waiting_for_gradients, 100.030, 100.032},
        {0, "communication", "bucket 0, 1 MiB", 100.020, 100.028},
        {1, "compute", "forward", 100.001, 100.011},
        {1, "compute", waiting_for_gradients, 100.011, 100.019},
        {1, "communication", "bucket 0, 1 MiB", 100.011, 100.019},
    };
    const std::vector<StreamSpan> without{
        {0, "compute", "backward to x", 200.0, 200.030},
        {0, "compute", waiting_for_gradients, 200.030, 200.038},
        {0, "communication", "bucket 0, 1 MiB", 200.030, 200.038},
    };
    const std::string text = printed([&] { show_timeline({spans, without}); });
    CAPTURE(text);
    const auto line = [&](const std::string& part) { return has(text, part); };
    REQUIRE(line("as asked     0   32.0 ms    30.0 ms        8.00 ms          75.0 %"));
    REQUIRE(line("as asked     1   18.0 ms    10.0 ms        8.00 ms           0.0 %"));
    REQUIRE(line("none         0   38.0 ms    30.0 ms        8.00 ms           0.0 %"));
    const TemporaryFolder folder;
    write_timeline(folder / "run.csv", {spans, without});
    const Csv csv = read_csv(folder / "run_timeline.csv");
    REQUIRE(csv.rows.size() == 10);
    REQUIRE(csv.number(0, "begin_ms") == 0);
    REQUIRE(csv.number(3, "begin_ms") == Approx(20));
    REQUIRE(csv.number(3, "end_ms") == Approx(28));
    REQUIRE(csv.text(3, "stream") == "communication");
    REQUIRE(csv.text(3, "name") == "bucket 0, 1 MiB");
    REQUIRE(csv.text(6, "overlap") == "on");
    REQUIRE(csv.text(7, "overlap") == "off");
    REQUIRE(csv.number(7, "begin_ms") == 0);
    write_timeline("", {spans, {}});
    Trace trace(folder / "trace.json");
    add_to_trace(trace, spans);
    trace.write();
    const std::string events = contents(folder / "trace.json");
    for (const char* part : {"waiting for gradients", "bucket 0, 1 MiB", "communication"})
        REQUIRE(has(events, part));
}

}  // namespace ddp::test
