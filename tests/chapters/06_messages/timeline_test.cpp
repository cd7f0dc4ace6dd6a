// Tracks: spans that follow each other as the work did, and those of all ranks on every rank.
#include "06_messages/support/timeline.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

// The linker calls the second in the place of the first, the runtime's (--wrap, in CMakeLists.txt).
cudaError_t create_event(cudaEvent_t* event, unsigned int flags) asm("__real_" DDP_CREATE_EVENT);
cudaError_t count_event(cudaEvent_t* event, unsigned int flags) asm("__wrap_" DDP_CREATE_EVENT);

static std::atomic<int> events_created = 0;
cudaError_t count_event(cudaEvent_t* event, unsigned int flags) {
    events_created++;
    return create_event(event, flags);
}

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

TEST_CASE("timeline: spans of a track follow each other, as long as the work was") {
    Stream stream;
    StreamTrack track("compute", stream);
    const double before_s = now_s();
    const int ten = 10, twenty = 20, thirty = 30, fifty = 50;
    track.begin();
    sleep_on(stream, twenty);
    track.mark("twenty");
    sleep_on(stream, fifty);
    track.mark("fifty, and a name with spaces");
    sleep_on(stream, ten);  // in no span
    track.begin();
    sleep_on(stream, thirty);
    track.mark("thirty");
    const std::vector<StreamSpan> spans = track.read(3);
    const double after_s = now_s();
    REQUIRE(spans.size() == 3);
    REQUIRE(spans[0].what == "twenty");
    REQUIRE(spans[1].what == "fifty, and a name with spaces");
    REQUIRE(spans[2].what == "thirty");
    const double lengths[] = {0.02, 0.05, 0.03};
    constexpr double roundings = 1e-6;
    for (std::size_t i = 0; i < 3; i++) {
        REQUIRE(spans[i].rank == 3);
        REQUIRE(spans[i].track == "compute");
        REQUIRE(spans[i].end_s - spans[i].begin_s >= lengths[i] - roundings);
    }
    REQUIRE(spans[0].begin_s >= before_s - roundings);
    REQUIRE(spans[1].begin_s == spans[0].end_s);
    REQUIRE(spans[2].begin_s >= spans[1].end_s + 0.01 - roundings);
    REQUIRE(spans[2].end_s <= after_s + roundings);
    REQUIRE(track.read(3).empty());
}

TEST_CASE("timeline: a track creates no events but in its first spans") {
    Stream stream;
    StreamTrack track("communication", stream);
    const auto spans_of = [&](int collectives) {
        for (int i = 0; i < collectives; i++) {
            track.begin();
            track.mark(std::to_string(i));
        }
        return track.read(0);
    };
    events_created = 0;
    REQUIRE(spans_of(10).size() == 10);
    REQUIRE(events_created == 2 * 10 + 1);  // and what the clock is read by
    REQUIRE(spans_of(10).back().what == "9");
    REQUIRE(spans_of(7).size() == 7);
    REQUIRE(events_created == 2 * 10 + 1);
}

TEST_CASE("timeline: the spans of all ranks come to every rank, in the ranks' order") {
    World world(thread_options(3));
    std::vector<std::vector<StreamSpan>> all(3);
    world.run([&](Rank& rank) {
        std::vector<StreamSpan> mine;
        for (int i = 0; i < rank.rank(); i++)
            mine.push_back({rank.rank(), i == 0 ? "compute" : "another stream",
                            "part " + std::to_string(i) + ", 1.5 MiB", 1234567.0 + 1.0 / 3 + i,
                            1234568.5 + i});
        all[static_cast<std::size_t>(rank.rank())] = gather(rank, mine);
    });
    for (const std::vector<StreamSpan>& spans : all) {
        REQUIRE(spans.size() == 3);
        const int ranks[] = {1, 2, 2};
        for (std::size_t i = 0; i < 3; i++) {
            const int number = i == 2 ? 1 : 0;
            REQUIRE(spans[i].rank == ranks[i]);
            REQUIRE(spans[i].track == (number == 0 ? "compute" : "another stream"));
            REQUIRE(spans[i].what == "part " + std::to_string(number) + ", 1.5 MiB");
            REQUIRE(spans[i].begin_s == 1234567.0 + 1.0 / 3 + number);
            REQUIRE(spans[i].end_s == 1234568.5 + number);
        }
    }
}

}  // namespace ddp::test
