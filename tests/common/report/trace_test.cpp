#include "common/report/trace.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <thread>

#include "tests/common/report/temporary_folder.hpp"
#include "tests/common/report/thrown.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

json events_of(const std::filesystem::path& path) {
    return json::parse(contents(path)).at("traceEvents");
}

// The events whose "ph" is `kind`: "M" for metadata, "X" for spans.
std::vector<json> of_kind(const json& events, const std::string& kind) {
    std::vector<json> result;
    for (const json& event : events)
        if (event.at("ph") == kind)
            result.push_back(event);
    return result;
}

}  // namespace

TEST_CASE("a rank is a process, a stream one of its threads", "[report][trace]") {
    const TemporaryFolder folder;
    Trace trace(folder / "t.json");
    const Track compute = trace.track(3, "compute");
    const Track copies = trace.track(3, "copies");
    const Track other = trace.track(0, "compute");
    const Track again = trace.track(3, "copies");
    CHECK(again.index == copies.index);
    CHECK(again.process == 3);
    CHECK(other.index == 0);
    const Trace::Time start(1234567us);
    trace.add(copies, "gradients", start + 250ns, start + 1500250ns, {{"bytes", "1.5 MiB"}});
    trace.add(compute, "forward", start, start + 2us);
    trace.write();

    const json events = events_of(folder / "t.json");
    const std::vector<json> spans = of_kind(events, "X");
    REQUIRE(spans.size() == 2);
    CHECK(spans[0].at("name") == "gradients");
    CHECK(spans[0].at("pid") == 3);
    CHECK(spans[0].at("ts").get<double>() == Approx(1234567.25).epsilon(1e-12));
    CHECK(spans[0].at("dur").get<double>() == Approx(1500.0));
    CHECK(spans[0].at("args") == json{{"bytes", "1.5 MiB"}});
    CHECK(spans[1].at("name") == "forward");
    CHECK_FALSE(spans[1].contains("args"));

    std::set<std::pair<int, int>> threads;
    for (const json& event : of_kind(events, "M")) {
        const int pid = event.at("pid"), tid = event.at("tid");
        const json& args = event.at("args");
        if (event.at("name") == "process_name")
            CHECK(args.at("name") == "rank " + std::to_string(pid));
        else if (event.at("name") == "process_sort_index")
            CHECK(args.at("sort_index") == pid);
        else if (event.at("name") == "thread_name")
            CHECK(threads.insert({pid, tid}).second);
        else
            CHECK(event.at("name") == "thread_sort_index");
        if (event.at("name") == "thread_name" && tid == spans[0].at("tid"))
            CHECK(args.at("name") == "copies");
        if (event.at("name") == "thread_sort_index" && tid == spans[0].at("tid"))
            CHECK(args.at("sort_index") == 1);
        CHECK(pid != tid);
    }
    CHECK(threads.size() == 3);
    CHECK(of_kind(events, "M").size() == 2 * 2 + 3 * 2);
}

TEST_CASE("any name makes valid JSON", "[report][trace]") {
    const TemporaryFolder folder;
    Trace trace(folder / "t.json");
    const std::string odd = "a \"quoted\"\n\t\\name\x01 perché";
    const Track track = trace.track(0, odd);
    trace.add(track, odd, {}, {}, {{odd, odd}});
    trace.add(track, "cut \xC3", {}, {});
    trace.write();
    const std::vector<json> spans = of_kind(events_of(folder / "t.json"), "X");
    REQUIRE(spans.size() == 2);
    CHECK(spans[0].at("name") == odd);
    CHECK(spans[0].at("args").at(odd) == odd);
    CHECK(spans[1].at("name") == "cut \xEF\xBF\xBD");
}

TEST_CASE("ranks record at the same time", "[report][trace]") {
    const TemporaryFolder folder;
    Trace trace(folder / "t.json");
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 4; rank++)
        ranks.emplace_back([&trace, rank] {
            for (int i = 0; i < 100; i++)
                Span span(trace, trace.track(rank, "compute"), "step " + std::to_string(i));
        });
    for (std::thread& rank : ranks)
        rank.join();
    trace.write();
    std::set<std::pair<int, std::string>> seen;
    for (const json& span : of_kind(events_of(folder / "t.json"), "X")) {
        CHECK(span.at("dur").get<double>() >= 0);
        seen.insert({span.at("pid").get<int>(), span.at("name").get<std::string>()});
    }
    CHECK(seen.size() == 400);
}

TEST_CASE("a span lasts as long as its block, and holds those within", "[report][trace]") {
    const TemporaryFolder folder;
    Trace trace(folder / "t.json");
    const Track track = trace.track(1, "host");
    {
        const Span outer(trace, track, "outer");
        const Span inner(trace, track, "inner", {{"n", "7"}});
        std::this_thread::sleep_for(5ms);
    }
    trace.write();
    const std::vector<json> spans = of_kind(events_of(folder / "t.json"), "X");
    REQUIRE(spans.size() == 2);
    const json &inner = spans[0], &outer = spans[1];
    CHECK(inner.at("name") == "inner");
    CHECK(inner.at("args").at("n") == "7");
    CHECK(inner.at("dur").get<double>() >= 5000);
    CHECK(outer.at("ts").get<double>() <= inner.at("ts").get<double>());
    CHECK(outer.at("dur").get<double>() >= inner.at("dur").get<double>());
}

TEST_CASE("events of another process are appended", "[report][trace]") {
    const TemporaryFolder folder;
    Trace first(folder / "first.json"), second(folder / "second.json"),
        third(folder / "third.json");
    first.add(first.track(0, "compute"), "a", {}, {});
    second.add(second.track(1, "compute"), "b", {}, {});
    first.append(second.events());
    first.append(third.events());
    first.write();
    const std::vector<json> spans = of_kind(events_of(folder / "first.json"), "X");
    REQUIRE(spans.size() == 2);
    CHECK(spans[0].at("pid") == 0);
    CHECK(spans[1].at("pid") == 1);
    CHECK(spans[1].at("name") == "b");
}

TEST_CASE("the file is valid from the start, and its path checked", "[report][trace]") {
    const TemporaryFolder folder;
    const Trace trace(folder / "t.json");
    CHECK(events_of(folder / "t.json").empty());
    const std::string path = (folder / "none" / "t.json").string();
    CHECK(
        thrown<std::runtime_error>([&] { Trace broken(path); }) ==
        "'" + path +
            "' cannot be written (No such file or directory): give --trace a file in a folder that "
            "exists and is yours.");
    CHECK(thrown<std::runtime_error>([] { Trace full("/dev/full"); }).find("No space left") !=
          std::string::npos);
}

TEST_CASE("without a path nothing is kept", "[report][trace]") {
    Trace trace({});
    CHECK_FALSE(trace.enabled());
    const Track track = trace.track(0, "compute");
    { const Span span(trace, track, "step"); }
    CHECK(trace.events().empty());
    trace.append("{}");
    CHECK(trace.events().empty());
    trace.write();
}

}  // namespace ddp::test
