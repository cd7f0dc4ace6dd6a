// Lanes: intervals that follow each other as the work did, and everyone's on every rank.
#include "06_messages/timeline.hpp"

#include <chrono>
#include <thread>

#include "tests/chapters/support/worlds.hpp"
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

}  // namespace ddp::test
