// The bench's own tables and numbers; not how fast anything is.
#include <unistd.h>

#include <filesystem>
#include <map>

#include "common/report/csv.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

std::string csv_path() {
    return std::filesystem::temp_directory_path() /
           ("bench_all_reduce" + std::to_string(getpid()) + ".csv");
}

// Rows of each algorithm, after every number in them was checked.
std::map<std::string, int> rows_of(const Csv& file, int ranks) {
    std::map<std::string, int> rows;
    for (std::size_t i = 0; i < file.rows.size(); i++) {
        if (file.number(i, "ranks") != ranks)
            continue;
        const std::string& algorithm = file.text(i, "algorithm");
        rows[algorithm]++;
        CAPTURE(algorithm, ranks, file.text(i, "bytes"));
        REQUIRE(file.text(i, "wrong") == (algorithm == "limit" ? "n/a" : "0"));
        REQUIRE(file.number(i, "median_us") > 0);
        REQUIRE(file.number(i, "p99_us") > 0);
        const double bandwidth = file.number(i, "algbw_gbs");
        REQUIRE(bandwidth == Approx(file.number(i, "bytes") / file.number(i, "median_us") * 1e-3));
        if (ranks == 1)
            REQUIRE(file.text(i, "busbw_gbs") == "n/a");
        else
            REQUIRE(file.number(i, "busbw_gbs") == Approx(bandwidth * 2 * (ranks - 1) / ranks));
    }
    return rows;
}

}  // namespace

TEST_CASE("bench all_reduce measures every way beside MPI and the limit") {
    const ChildResult run = run_command({BENCH_ALL_REDUCE, "--ranks", "1,3", "--sizes", "4,1024",
                                         "--jobs", "1", "--rounds", "1", "--csv", csv_path()});
    CAPTURE(run.output);
    REQUIRE(run.exit_code == 0);
    REQUIRE(count(run.output, "All-reduce on 1 rank: bus bandwidth, GB/s\n") == 1);
    REQUIRE(count(run.output, "All-reduce on 3 ranks: bus bandwidth, GB/s\n") == 1);
    REQUIRE(count(run.output, "native on 3 ranks, in place\n") == 1);
    REQUIRE(count(run.output, "native / limit") == 1);  // one rank has nothing to compare
    const Csv file = read_csv(csv_path());
    std::filesystem::remove(csv_path());
    REQUIRE(file.header == Words{"algorithm", "ranks", "bytes", "median_us", "p99_us", "algbw_gbs",
                                 "busbw_gbs", "wrong"});
    std::map<std::string, int> expected{{"limit", 2},     {"native", 2},   {"server", 2},
                                        {"ring", 2},      {"two-shot", 2}, {"reduce+broadcast", 2},
                                        {"host ring", 2}, {"one-shot", 1}};
#if !defined(DDP_CUDA)
    if (has_mpirun())
        expected["mpi"] = expected["mpi_tuned"] = 2;
    REQUIRE(count(run.output, "native / MPI: how many times as fast") == (has_mpirun() ? 1 : 0));
#endif
    REQUIRE(rows_of(file, 3) == expected);
    REQUIRE(rows_of(file, 1) == expected);
    REQUIRE(nothing_is_left(BENCH_ALL_REDUCE));
}

TEST_CASE("bench all_reduce takes one algorithm, and runs within a job") {
    const ChildResult ring =
        run_command({BENCH_ALL_REDUCE, "--ranks", "2", "--algorithm", "ring", "--quick"});
    CAPTURE(ring.output);
    REQUIRE(ring.exit_code == 0);
    REQUIRE(count(ring.output, "ring on 2 ranks, in place\n") == 1);
    REQUIRE(count(ring.output, "\nnative") == 0);
    REQUIRE(count(ring.output, "\ntwo-shot") == 0);
    if (!has_mpirun())
        return;
    const Launch launch = launches(BENCH_ALL_REDUCE, 2).back();
    const ChildResult job = start(launch, {"--sizes", "4", "--rounds", "1", "--csv", csv_path()});
    CAPTURE(job.output);
    REQUIRE(job.exit_code == 0);
    REQUIRE(count(job.output, "All-reduce on 2 ranks") == 1);
    std::map<std::string, int> rows = rows_of(read_csv(csv_path()), 2);
    std::filesystem::remove(csv_path());
    REQUIRE(rows["mpi"] == 1);
    REQUIRE(rows["one-shot"] == 1);
}

TEST_CASE("bench all_reduce refuses what makes no sense") {
    const auto said = [](const Words& words) {
        const ChildResult result = run_command(Words{BENCH_ALL_REDUCE} + words);
        REQUIRE(result.exit_code == 2);
        REQUIRE(count(result.output, "\n") == 1);
        return result.output;
    };
    REQUIRE(said({"--ranks", "2,65"}) ==
            "error: --ranks needs a whole number from 1 to 64, not '65'.\n");
    REQUIRE(said({"--sizes", "4,x"}).starts_with("error: --sizes needs a whole number from 1 to"));
    REQUIRE(said({"--algorithm", "rings"})
                .starts_with("error: --algorithm needs one of all, native, server"));
    REQUIRE(said({"--processes", "2"})
                .starts_with("error: --processes makes no sense here: this "
                             "bench starts its processes itself"));
}

}  // namespace ddp::test
