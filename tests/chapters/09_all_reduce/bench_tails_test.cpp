// The table and the file of the bench, and how it tells what has kept a call.
#include <cmath>
#include <map>
#include <string>

#include "tests/bench/09_all_reduce/call_times.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const Program bench(BENCH_TAILS);

// A call of 100 us on a rank.
ThreadUse use(std::int64_t own_us, std::int64_t host_us, std::int64_t sleeps = 0,
              std::int64_t page_faults = 0) {
    return {100'000, own_us * 1000, host_us * 1000, sleeps, page_faults};
}

Cause cause(const ThreadUse& a, const ThreadUse& b) {
    const ThreadUse ranks[] = {a, b};
    REQUIRE(cause_of(ranks) == cause_of(std::vector<ThreadUse>{b, a}));
    return cause_of(ranks);
}

}  // namespace

TEST_CASE("what has kept a call is what had the core of the rank that computed least") {
    const ThreadUse waited = use(99, 0);  // for the other one, and looked all the time
    REQUIRE(cause(waited, use(98, 0)) == Cause::nothing);
    REQUIRE(cause(waited, use(10, 80)) == Cause::own_host);
    REQUIRE(cause(waited, use(10, 80, 1)) == Cause::own_host);
    REQUIRE(cause(waited, use(10, 20)) == Cause::others);
    REQUIRE(cause(waited, use(40, 0, 1)) == Cause::sleep);
    REQUIRE(cause(waited, use(90, 0, 0, 1)) == Cause::page_fault);
    // A rank that slept because the other one was kept is not what kept the call.
    REQUIRE(cause(use(60, 0, 2), use(10, 80)) == Cause::own_host);
}

TEST_CASE("times come into the buckets whose bounds they lie between") {
    for (const double us : {0.3, 1.0, 1.5, 2.0, 60.0, 1e6}) {
        CAPTURE(us);
        REQUIRE(begin_us(bucket_of(us)) <= us * 1.000001);
        REQUIRE(begin_us(bucket_of(us) + 1) > us);
    }
    REQUIRE(begin_us(2) == Approx(2));
}

TEST_CASE("bench tails counts each call once, and the pauses of a clock beside them") {
    const ProgramRun run =
        bench.run({"--processes", "2", "--sizes", "4,64", "--calls", "60", "--rounds", "3"});
    REQUIRE(run.count("All-reduces on 2 ranks: slow calls of a thousand, by what kept them\n") ==
            1);
    REQUIRE(run.csv.header == Words{"ranks", "bytes", "what", "from_us", "to_us", "count"});
    std::map<double, double> calls;
    std::map<std::string, double> of;
    for (std::size_t row = 0; row < run.csv.rows.size(); row++) {
        const std::string& what = run.csv.text(row, "what");
        REQUIRE(run.csv.number(row, "ranks") == 2);
        REQUIRE(run.csv.number(row, "to_us") ==
                Approx(run.csv.number(row, "from_us") * std::sqrt(2.0)));
        of[what] += run.csv.number(row, "count");
        if (what != "clock")
            calls[run.csv.number(row, "bytes")] += run.csv.number(row, "count");
    }
    REQUIRE(calls == std::map<double, double>{{4096, 180}, {65536, 180}});
    REQUIRE(of["nothing"] > 0);
}

}  // namespace ddp::test
