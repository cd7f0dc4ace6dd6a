// Files of measured links and of recorded steps: what they mean, and how wrong ones are refused.
#include "21_cluster/measured/own_files.hpp"
#include "tests/common/report/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/text.hpp"

namespace ddp::test {
namespace {

const TemporaryFolder folder;

std::filesystem::path file(const std::string& text) {
    const std::filesystem::path path = folder / "file.csv";
    std::ofstream(path) << text;
    return path;
}

template <class Read>
std::string refusal(const Read& read, const std::string& text) {
    try {
        read(file(text));
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "";
}

const std::string links_header = "link,bytes,seconds\n";
const std::string step_header = "overlap,rank,stream,name,begin_ms,end_ms\n";

}  // namespace

TEST_CASE("measured links: straight lines between the points, and beyond them") {
    const MeasuredLinks links = read_links(
        file(links_header +
             "inside,100,1\nbetween,100,3\nbetween,200,4\ninside,300,2\nbetween,400,10\n"));
    REQUIRE(links.inside.latency_s == Approx(0.5));
    REQUIRE(links.inside.busy_s(100) == Approx(0.5));
    REQUIRE(links.between.latency_s == Approx(2));
    REQUIRE(links.between.busy_s(0) == Approx(0));
    REQUIRE(links.between.busy_s(50) == Approx(0.5));
    REQUIRE(links.between.busy_s(200) == Approx(2));
    REQUIRE(links.between.busy_s(300) == Approx(5));
    REQUIRE(links.between.busy_s(1000) == Approx(26));
}

TEST_CASE("measured links: a straight line is alpha and beta") {
    const MeasuredLinks links =
        read_links(file(links_header + "between,1000,0.003\nbetween,5000,0.007\n"));
    const simulator::Link line = simulator::straight_link(0.002, 1e6);
    for (const double bytes : {0.0, 10.0, 1000.0, 3000.0, 1e7}) {
        REQUIRE(links.between.busy_s(bytes) == Approx(line.busy_s(bytes)).margin(1e-12));
        REQUIRE(links.inside.busy_s(bytes) == links.between.busy_s(bytes));
    }
    REQUIRE(links.between.latency_s == Approx(line.latency_s));
}

TEST_CASE("measured links: wrong files are refused in a sentence with the line") {
    const auto refused = [](const std::string& lines) {
        return refusal(read_links, links_header + lines);
    };
    REQUIRE(has(refused("inside,1,1\noutside,2,1\n"), "line 3: the link is 'outside'"));
    REQUIRE(has(refused("inside,8,1\ninside,8,2\n"), "line 3: the bytes of a link must grow"));
    REQUIRE(has(refused("inside,many,1\n"), "line 2: The CSV cell 'many' in column 'bytes'"));
    REQUIRE(has(refused("inside,1,-1\n"), "line 2: 'seconds' must be a number from 0"));
    REQUIRE(has(refused("inside,1\n"), "line 2"));
    REQUIRE(has(refused("inside,1,1\n"), "needs two sizes or more"));
    REQUIRE(has(refused(""), "needs two sizes or more"));
    REQUIRE(
        has(refusal(read_links, "bytes,seconds\n1,1\n"), "line 2: There is no CSV column 'link'"));
    REQUIRE(has(refusal([](const auto&) { return read_links(folder / "none"); }, ""),
                "cannot be read"));
}

TEST_CASE("recorded step: compute, buckets and all-reduces of two ranks") {
    // Rank 0 computes 10 + 20 + 5 ms, rank 1 begins 2 ms later and takes 12 + 22 + 5.
    const RecordedStep recorded =
        read_step(file(step_header +
                       "on,0,compute,forward,0,10\non,0,compute,backward to "
                       "b,10,18\non,0,compute,backward to a,18,30\n"
                       "on,0,compute,waiting for gradients,30,40\non,0,compute,optimizer,40,45\n"
                       "on,0,communication,\"bucket 0, 1.5 "
                       "MiB\",18,33\non,0,communication,\"bucket 1, 512 B\",33,40\n"
                       "on,1,compute,forward,2,14\non,1,compute,backward to "
                       "b,14,24\non,1,compute,backward to a,24,36\n"
                       "on,1,compute,waiting for gradients,36,40\non,1,compute,optimizer,40,45\n"
                       "on,1,communication,\"bucket 0, 1.5 "
                       "MiB\",24,33\non,1,communication,\"bucket 1, 512 B\",36,40\n"
                       "off,0,compute,forward,0,100\n"));
    REQUIRE(recorded.ranks == 2);
    REQUIRE(recorded.measured_s == Approx((0.045 + 0.043) / 2));
    REQUIRE(recorded.step.forward_s == Approx((0.010 + 0.012) / 2));
    REQUIRE(recorded.step.optimizer_s == Approx(0.005));
    REQUIRE(recorded.step.buckets.size() == 2);
    REQUIRE(recorded.step.buckets[0].bytes == 1.5 * (1 << 20));
    REQUIRE(recorded.step.buckets[1].bytes == 512);
    REQUIRE(recorded.step.buckets[0].backward_s == Approx((0.008 + 0.010) / 2));
    REQUIRE(recorded.step.buckets[1].backward_s == Approx((0.012 + 0.012) / 2));
    REQUIRE(recorded.all_reduce_s[0] == Approx(0.033 - 0.024));
    REQUIRE(recorded.all_reduce_s[1] == Approx(0.040 - 0.036));
}

TEST_CASE("recorded step: the reference timelines of the overlap chapter can be read") {
    for (const auto& [name, ranks] :
         {std::pair{"overlap_timeline.csv", 4}, {"overlap_link_timeline.csv", 2}}) {
        const RecordedStep recorded = read_step(std::filesystem::path(REFERENCE_FOLDER) / name);
        REQUIRE(recorded.ranks == ranks);
        std::size_t next = 0;
        const simulator::Seconds measured = [&](double) { return recorded.all_reduce_s[next++]; };
        // The model of a step, with the all-reduces as they were, gives the step as it was.
        REQUIRE(simulator::step_s(recorded.step, measured, true) ==
                Approx(recorded.measured_s).epsilon(0.1));
    }
}

TEST_CASE("recorded step: wrong files are refused in a sentence") {
    const auto refused = [](const std::string& lines) {
        return refusal(read_step, step_header + lines);
    };
    const std::string rank = "on,0,compute,backward,1,2\n";
    REQUIRE(has(refused(""), "holds no step with overlap"));
    REQUIRE(has(refused("off,0,compute,backward,1,2\n"), "holds no step with overlap"));
    REQUIRE(has(refused(rank), "rank 0 lacks its backward or some of its buckets"));
    REQUIRE(has(refused(rank + "on,0,communication,bucket 0,1,2\n"),
                "line 3: 'bucket 0' should be a bucket and its size"));
    REQUIRE(has(refused("on,0,compute,backward,soon,2\n"), "line 2: The CSV cell 'soon'"));
    REQUIRE(has(refusal(read_step, "rank\n0\n"), "line 2: There is no CSV column 'overlap'"));
}

}  // namespace ddp::test
