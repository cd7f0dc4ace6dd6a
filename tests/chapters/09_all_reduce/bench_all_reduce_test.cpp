// The tables and numbers of the bench, but not how fast anything is.
#include <algorithm>
#include <map>

#include "09_all_reduce/all_reduce.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const Program bench(BENCH_ALL_REDUCE);

// Checks every number in the rows of `ranks` ranks, and returns the number of rows of each
// algorithm.
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

TEST_CASE("bench all_reduce measures every algorithm, MPI and the limit") {
    const ProgramRun run =
        bench.run({"--ranks", "1,3", "--sizes", "4,1024", "--jobs", "1", "--rounds", "1"});
    REQUIRE(run.count("All-reduce on 1 rank: bus bandwidth, GB/s\n") == 1);
    REQUIRE(run.count("All-reduce on 3 ranks: bus bandwidth, ") ==
            1);  // GB/s, unless others compute, too
    REQUIRE(run.count("native on 3 ranks, in place\n") == 1);
    REQUIRE(run.count("native / limit") == 1);  // one rank has nothing to compare
    const Csv& file = run.csv;
    REQUIRE(file.header == Words{"algorithm", "ranks", "bytes", "median_us", "p99_us", "algbw_gbs",
                                 "busbw_gbs", "wrong"});
    std::map<std::string, int> expected{{"limit", 2}, {"native", 2}};
    for (const ListedAllReduce& listed : all_reduces)
        expected[listed.name] = (listed.max_bytes >= 4 << 10) + (listed.max_bytes >= 1 << 20);
#if !defined(DDP_CUDA)
    if (has_mpirun())
        expected["mpi"] = expected["mpi_tuned"] = 2;
    REQUIRE(run.count("native / MPI: how many times as fast") == (has_mpirun() ? 1 : 0));
#endif
    REQUIRE(rows_of(file, 3) == expected);
    REQUIRE(rows_of(file, 1) == expected);
    REQUIRE(nothing_is_left(BENCH_ALL_REDUCE));
}

#if !defined(DDP_CUDA)
TEST_CASE("bench all_reduce measures another MPI, and native beside it") {
    const TemporaryFolder folder;
    const std::string prefix = (folder / "mpi").string();
    REQUIRE(has(bench.refusal({"--quick", "--mpi", prefix}),
                "error: --mpi " + prefix + ": no program can be made with it. "));
    if (!has_mpirun())
        return;
    // The MPI that is installed, in a folder as those of ./book setup mpis are.
    const ChildResult made = run_command(
        {"/bin/bash", "-c",
         "mkdir -p \"$0/bin\" && ln -s \"$(command -v mpirun)\" \"$0/bin\" && "
         "for kind in include lib; do read -r first _ <<<\"$(mpicc --showme:${kind:0:3}dirs)\" && "
         "ln -s \"$first\" \"$0/$kind\" || exit; done",
         prefix});
    CAPTURE(made.output);
    REQUIRE(made.exit_code == 0);
    const ProgramRun run = bench.run(
        {"--ranks", "3", "--sizes", "4,64", "--jobs", "2", "--rounds", "1", "--mpi", prefix});
    std::map<std::string, int> rows = rows_of(run.csv, 3);
    REQUIRE(std::ranges::any_of(rows, [](const auto& row) {
        return row.first.starts_with("Open MPI ") && row.second == 2;
    }));
    REQUIRE(rows["mpi"] == 2);
    REQUIRE(rows["native"] == 2);
    REQUIRE(run.count("native / MPI: how many times as fast as the best MPI") == 1);
}
#endif

TEST_CASE("bench all_reduce: nothing stays when it is killed") {
    for (const std::string programs : {"PATH=/nowhere", "PATH=/usr/bin:/bin"}) {  // mpirun's, too
        const TemporaryFolder folder;
        const std::string place = (folder / "").parent_path().string();
        const ChildResult script = run_command(
            {"/bin/bash", "-c",
             "\"$0\" --ranks 2 --jobs 9 & /bin/sleep 1; kill -9 $!; wait $!; [[ $? == 137 ]]",
             BENCH_ALL_REDUCE},
            {"TMPDIR=" + place, programs});
        REQUIRE(script.exit_code == 0);  // it was running, and was killed
        REQUIRE(nothing_is_left(BENCH_ALL_REDUCE));
        for (const auto& entry : std::filesystem::directory_iterator(place))
            REQUIRE(entry.path().filename().string().starts_with("ompi."));
    }
}

TEST_CASE("bench all_reduce takes one algorithm, and runs within a job") {
    const ProgramRun ring = bench.run({"--ranks", "2", "--algorithm", "ring", "--quick"});
    REQUIRE(ring.count("ring on 2 ranks, in place\n") == 1);
    REQUIRE(ring.count("\nnative") == 0);
    REQUIRE(ring.count("\ntwo-shot") == 0);
    if (!has_mpirun())
        return;
    const Launch launch = launches(BENCH_ALL_REDUCE, 2).back();
    const TemporaryFolder folder;
    const std::string csv = (folder / "run.csv").string();
    const ProgramRun job = run_job(launch, {"--sizes", "4", "--rounds", "1", "--csv", csv});
    REQUIRE(job.count("All-reduce on 2 ranks") == 1);
    std::map<std::string, int> rows = rows_of(read_csv(csv), 2);
    REQUIRE(rows["mpi"] == 1);
    REQUIRE(rows["one-shot"] == 1);
}

TEST_CASE("bench all_reduce refuses what makes no sense") {
    REQUIRE(bench.refusal({"--ranks", "2,65"}) ==
            "error: --ranks needs a whole number from 1 to 64, not '65'.\n");
    REQUIRE(bench.refusal({"--sizes", "4,x"})
                .starts_with("error: --sizes needs a whole number from 1 to"));
    REQUIRE(bench.refusal({"--algorithm", "rings"})
                .starts_with("error: --algorithm needs one of all, native, server"));
    REQUIRE(bench.refusal({"--processes", "2"})
                .starts_with("error: --processes makes no sense here: this "
                             "bench starts its processes itself"));
}

}  // namespace ddp::test
