// Lanes: intervals that follow each other as the work did, and everyone's on every rank.
#include "12_overlap/timeline.hpp"

#include <chrono>
#include <iostream>
#include <sstream>
#include <thread>

#include "12_overlap/timeline_report.hpp"
#include "common/report/csv.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/common/report/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// `milliseconds` must live until that is over.
void sleep_on(Stream& stream, const int& milliseconds) {
    DDP_CHECK(cudaLaunchHostFunc(
        stream,
        [](void* data) {
            std::this_thread::sleep_for(std::chrono::milliseconds(*static_cast<const int*>(data)));
        },
        const_cast<int*>(&milliseconds)));
}

// What `work` prints.
std::string printed(const std::function<void()>& work) {
    std::ostringstream text;
    std::streambuf* const before = std::cout.rdbuf(text.rdbuf());
    work();
    std::cout.rdbuf(before);
    return text.str();
}

}  // namespace

TEST_CASE("timeline: intervals of a lane follow each other, as long as the work was") {
    Stream stream;
    Lane lane("compute", stream);
    const double before_s = now_s();
    const int ten = 10, twenty = 20, thirty = 30, fifty = 50;
    lane.begin();
    sleep_on(stream, twenty);
    lane.mark("twenty");
    sleep_on(stream, fifty);
    lane.mark("fifty, and a name with spaces");
    sleep_on(stream, ten);  // nobody's
    lane.begin();
    sleep_on(stream, thirty);
    lane.mark("thirty");
    const std::vector<Interval> intervals = lane.read(3);
    const double after_s = now_s();
    REQUIRE(intervals.size() == 3);
    REQUIRE(intervals[0].what == "twenty");
    REQUIRE(intervals[1].what == "fifty, and a name with spaces");
    REQUIRE(intervals[2].what == "thirty");
    const double lengths[] = {0.02, 0.05, 0.03};
    constexpr double roundings = 1e-6;
    for (std::size_t i = 0; i < 3; i++) {
        REQUIRE(intervals[i].rank == 3);
        REQUIRE(intervals[i].lane == "compute");
        REQUIRE(intervals[i].end_s - intervals[i].begin_s >= lengths[i] - roundings);
    }
    REQUIRE(intervals[0].begin_s >= before_s - roundings);
    REQUIRE(intervals[1].begin_s == intervals[0].end_s);
    REQUIRE(intervals[2].begin_s >= intervals[1].end_s + 0.01 - roundings);
    REQUIRE(intervals[2].end_s <= after_s + roundings);
    REQUIRE(lane.read(3).empty());
}

TEST_CASE("timeline: everyone's intervals come to every rank, in the ranks' order") {
    World world(thread_options(3));
    std::vector<std::vector<Interval>> all(3);
    world.run([&](Rank& rank) {
        std::vector<Interval> mine;
        for (int i = 0; i < rank.rank(); i++)
            mine.push_back({rank.rank(), i == 0 ? "compute" : "another stream",
                            "part " + std::to_string(i) + ", 1.5 MiB", 1234567.0 + 1.0 / 3 + i,
                            1234568.5 + i});
        all[static_cast<std::size_t>(rank.rank())] = gather(rank, mine);
    });
    for (const std::vector<Interval>& intervals : all) {
        REQUIRE(intervals.size() == 3);
        const int ranks[] = {1, 2, 2};
        for (std::size_t i = 0; i < 3; i++) {
            const int number = i == 2 ? 1 : 0;
            REQUIRE(intervals[i].rank == ranks[i]);
            REQUIRE(intervals[i].lane == (number == 0 ? "compute" : "another stream"));
            REQUIRE(intervals[i].what == "part " + std::to_string(number) + ", 1.5 MiB");
            REQUIRE(intervals[i].begin_s == 1234567.0 + 1.0 / 3 + number);
            REQUIRE(intervals[i].end_s == 1234568.5 + number);
        }
    }
}

TEST_CASE("timeline: the report says what was hidden, and the files begin at 0") {
    const std::vector<Interval> intervals{
        {0, "compute", "forward", 100.0, 100.010},
        {0, "compute", "backward to x", 100.010, 100.030},
        {0, "compute", waiting_for_gradients, 100.030, 100.032},
        {0, "communication", "bucket 0, 1 MiB", 100.020, 100.028},
        {1, "compute", "forward", 100.001, 100.011},
        {1, "compute", waiting_for_gradients, 100.011, 100.019},
        {1, "communication", "bucket 0, 1 MiB", 100.011, 100.019},
    };
    const std::vector<Interval> without{
        {0, "compute", "backward to x", 200.0, 200.030},
        {0, "compute", waiting_for_gradients, 200.030, 200.038},
        {0, "communication", "bucket 0, 1 MiB", 200.030, 200.038},
    };
    const std::string text = printed([&] { show_timeline({intervals, without}); });
    CAPTURE(text);
    const auto line = [&](const std::string& part) { return has(text, part); };
    REQUIRE(line("as asked     0   32.0 ms    30.0 ms        8.00 ms          75.0 %"));
    REQUIRE(line("as asked     1   18.0 ms    10.0 ms        8.00 ms           0.0 %"));
    REQUIRE(line("none         0   38.0 ms    30.0 ms        8.00 ms           0.0 %"));
    const TemporaryFolder folder;
    write_timeline(folder / "run.csv", {intervals, without});
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
    write_timeline("", {intervals, {}});
    Trace trace(folder / "trace.json");
    add_to_trace(trace, intervals);
    trace.write();
    const std::string events = contents(folder / "trace.json");
    for (const char* part : {"waiting for gradients", "bucket 0, 1 MiB", "communication"})
        REQUIRE(has(events, part));
}

}  // namespace ddp::test
