// The chapter's program: the plans that it prints, the sweep that it writes, the bits, under every
// launcher, and how it refuses.
#include <set>

#include "tests/chapters/support/jobs.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const std::string path = BUCKETS_PROGRAM;
const Program program(path);

// Returns how many buckets a network has after the first iteration.
std::size_t buckets(const std::string& output, const std::string& network) {
    const std::size_t begin = output.find("\n" + network + "\n");
    const std::size_t from = begin == output.npos ? 0 : begin;
    const std::string table = output.substr(from, output.find("\n\n", from) - from);
    return matches(table, "\n +2 +[0-9]+ +[0-9]+ +linear", 0).size();
}

Words hashes(const std::string& output) {
    return matches(output, "([0-9a-f]{16})  the same");
}

}  // namespace

TEST_CASE("buckets program: one bucket at first, then by the cap") {
    const std::string usual = program.run({"--ranks", "1"}).output;
    REQUIRE(count(usual, "To send buckets, two or more ranks") == 1);
    REQUIRE(buckets(usual, "eight layers of 512") == 2);
    REQUIRE(buckets("\n" + usual, "mlp") == 2);
    REQUIRE(buckets("\n" + program.run({"--ranks", "1", "--cap", "100"}).output, "mlp") == 1);
    REQUIRE(buckets("\n" + program.run({"--ranks", "1", "--cap", "0.001"}).output, "mlp") >= 3);
}

TEST_CASE("buckets program: the sweep is written, and bits differ by bucket from three ranks on") {
    const int ranks = 3;  // sweep_test checks the bits of two
    const Words words{"--quick", "--link", "1GB/s,200us"};
    const ProgramRun threads = program.run(Words{"--ranks", std::to_string(ranks)} + words);
    const Words bits = hashes(threads.output);
    REQUIRE(bits.size() == 3);
    REQUIRE(std::set<std::string>(bits.begin(), bits.end()).size() == 3);
    const Csv& sweep = threads.csv;
    REQUIRE(sweep.rows.size() == 2 * 3);
    REQUIRE(sweep.number(0, "buckets") == 6);
    REQUIRE(sweep.number(2, "buckets") == 1);
    REQUIRE(sweep.number(3, "buckets") == 128);
    for (std::size_t row = 0; row < sweep.rows.size(); row++) {
        REQUIRE(sweep.number(row, "ranks") == ranks);
        // The program is never faster than the link.
        REQUIRE(sweep.number(row, "seconds") > 0.9 * sweep.number(row, "predicted_seconds"));
    }
    for (const Launch& launch : launches_with_kernels(path, ranks)) {
        CAPTURE(launch.name);
        REQUIRE(hashes(run_job(launch, words).output) == bits);
    }
    REQUIRE(nothing_is_left(path));
}

TEST_CASE("buckets program: what makes no sense is refused in a sentence") {
    REQUIRE(has(program.refusal({"--cap", "-1"}), "--cap"));
    REQUIRE(has(program.refusal({"--data", "/tmp"}), "nothing is read"));
    const ChildResult slow = program.call({"--quick", "--link", "1B/s,0s"});
    REQUIRE(slow.exit_code == 1);
    REQUIRE(count(slow.output, "error: ") == 1);
    REQUIRE(has(slow.output, "--link with 1.00 B/s is too slow: to send all gradients takes "));
}

}  // namespace ddp::test
