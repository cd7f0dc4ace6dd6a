// The communicator over MPI, in jobs started by mpirun: every call, the messages of failures, and
// the run after a failure. And the messages for communicators that are not available.
#include <chrono>
#include <iostream>
#include <regex>

#include "tests/chapters/support/jobs.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const Words strict{"CUDA_ON_CPU=strict"};

Launch by_mpirun(int ranks) {
    return launches(MPI_SCENARIO, ranks).back();
}

std::string nothing_wrong(int ranks) {
    std::string line = "wrong:";
    for (int r = 0; r < ranks; r++)
        line += " 0";
    return line + "\n";
}

// Runs a job whose first run fails, and whose next run makes all calls. Returns the first run's
// error.
std::string failure_of(const std::string& what, const std::string& victim,
                       const std::string& timeout_s = "30") {
    const ChildResult job =
        start(by_mpirun(3), {"--what", what, "--victim", victim, "--catch", "--timeout", timeout_s},
              120, strict);
    CAPTURE(what, victim, job.output);
    REQUIRE(job.exit_code == 0);
    REQUIRE(count(job.output, nothing_wrong(3)) == 1);
    const std::string text = plain(job.output);
    REQUIRE(text.starts_with("caught: "));
    return text.substr(8, text.find('\n') - 8);
}

bool is_missing(int ranks) {
    if (!processes_can_run_kernels(ranks))
        return true;
    if (!has_mpirun())
        std::cout << "SKIPPED: the communicator over MPI (no mpirun, or built without MPI)"
                  << std::endl;
    return !has_mpirun();
}

void require_all_calls_of(int ranks) {
    if (is_missing(ranks))
        return;
    const ChildResult job = start(by_mpirun(ranks), {}, 240, strict);
    CAPTURE(ranks, job.output);
    REQUIRE(job.output == nothing_wrong(ranks));
    REQUIRE(job.exit_code == 0);
}

}  // namespace

TEST_CASE("every call, every type, every sum, over MPI") {
    for (const int ranks : {1, 3})
        require_all_calls_of(ranks);
}

TEST_CASE("every call, every type, every sum, over MPI, of two ranks", "[.long]") {
    require_all_calls_of(2);
}

TEST_CASE("in the order of streams, and two communicators at once, over MPI") {
    if (is_missing(3))
        return;
    for (const auto& [what, ranks] : {std::pair("order", 3), {"two", 4}, {"shift", 3}}) {
        const ChildResult job = start(by_mpirun(ranks), {"--what", what}, 120, strict);
        CAPTURE(what, ranks, job.output);
        REQUIRE(job.output == nothing_wrong(ranks));
        REQUIRE(job.exit_code == 0);
    }
}

TEST_CASE("a rank that does something else over MPI is named, and the next run works") {
    if (is_missing(3))
        return;
    const std::string sum = "operation 2, all_reduce sum of 3000000 float (\"weights\")";
    const std::string end = ": all ranks must do the same, in the same order";
    const std::vector<std::pair<std::string, std::string>> cases{
        {"count", "operation 2, all_reduce sum of 2999999 float (\"weights\")"},
        {"op", "operation 2, all_reduce average of 3000000 float (\"weights\")"},
        {"name", "operation 2, all_reduce sum of 3000000 float (\"biases\")"},
        {"message", "operation 2, send of 5 float to rank 0 (\"mine\")"}};
    for (const auto& [what, theirs] : cases) {
        const std::string failure = failure_of(what, "1");
        CAPTURE(what, failure);
        // Either rank 1 or another rank may have noticed the difference first.
        const bool is_of_1 =
            failure.find("in " + sum + ", but rank 1 is in " + theirs + end) != failure.npos;
        const bool is_by_1 = failure.starts_with("rank 1: in " + theirs + ", but rank ") &&
                             failure.ends_with(" is in " + sum + end);
        REQUIRE((is_of_1 || is_by_1));
    }
    const std::string sends = failure_of("sends", "0");
    CAPTURE(sends);
    REQUIRE(count(sends, "operation 1, send of 100 float to rank 0 (\"mine\")") == 1);
    REQUIRE(count(sends, "operation 1, send of 100 float to rank 1 (\"mine\")") == 1);
}

TEST_CASE("a rank that throws or is absent over MPI is named, and the next run works") {
    if (is_missing(3))
        return;
    for (const char* victim : {"0", "2"})
        REQUIRE(failure_of("throw", victim) ==
                "rank " + std::string(victim) + ": broken on purpose");
    const std::string late = failure_of("absent", "1", "2");
    CAPTURE(late);
    REQUIRE(late.ends_with(
        ": waited 2.0 s in operation 2, all_reduce sum of 3000000 float (\"weights\") for rank "
        "1, which did not come"));
}

TEST_CASE("after a rank is killed no rank stays in MPI") {
    if (is_missing(3))
        return;
    for (const char* what : {"kill", "kill inside"})
        for (const char* victim : {"0", "1"}) {
            const ChildResult job =
                start(by_mpirun(3), {"--what", what, "--victim", victim, "--timeout", "5"});
            CAPTURE(what, victim, job.output);
            // Open MPI may report that it could not read the memory of a process that has ended.
            const std::string output = std::regex_replace(
                plain(job.output), std::regex("\\[[^\n]*\\] Read -1[^\n]*\n"), "");
            REQUIRE(output == "error: rank " + std::string(victim) +
                                  " ended without saying why: was it killed?\n");
            REQUIRE(job.exit_code != 0);
        }
    REQUIRE(nothing_is_left(MPI_SCENARIO));
}

TEST_CASE("after a rank is stopped no rank stays in MPI") {
    if (is_missing(3))
        return;
    const auto begin = std::chrono::steady_clock::now();
    const ChildResult job =
        start(by_mpirun(3), {"--what", "stop", "--victim", "1", "--timeout", "2"});
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    CAPTURE(job.output, elapsed.count());
    REQUIRE(count(job.output, "error:") == 1);
    REQUIRE(count(plain(job.output), "rank 1, which did not come") == 1);
    REQUIRE(job.exit_code != 0);
    REQUIRE(elapsed.count() < 15);
    REQUIRE(nothing_is_left(MPI_SCENARIO));
}

TEST_CASE("calls over MPI that make no sense are refused") {
    if (is_missing(3))
        return;
    const ChildResult job = start(by_mpirun(2), {"--what", "refusals"}, 120, strict);
    const std::string elsewhere =
        ": the data does not lie in this rank's arena; allocate it by allocate() of the same "
        "Peers or Communicator\n";
    REQUIRE(job.output ==
            "refused: bytes can be sent and gathered, but not summed\n"
            "refused: all_reduce sum of 10 float (\"mine\")" +
                elsewhere + "refused: all_gather of 100000 byte" + elsewhere +
                "refused: send: rank 0 is this rank itself\n"
                "refused: broadcast from rank 2: the ranks are 0 to 1\n");
    REQUIRE(job.exit_code == 0);
}

TEST_CASE("communicators that are not available are refused in one sentence") {
    const auto error_of = [](const Words& words) {
        return plain(Program(MPI_SCENARIO).refusal(words, 1));
    };
#if defined(DDP_MPI)
    const std::string end = ": start the program by mpirun -n 4, or use the communicator native.\n";
    REQUIRE(error_of({"--ranks", "1"}) ==
            "error: rank 0: The communicator mpi takes ranks that mpirun or srun has started, not "
            "threads of one process" +
                end);
    REQUIRE(error_of({"--processes", "1"}) ==
            "error: rank 0: The communicator mpi takes ranks that mpirun or srun has started, not "
            "processes started by our launcher" +
                end);
#else
    REQUIRE(error_of({"--ranks", "1"}) ==
            "error: rank 0: The communicator mpi is not in this program, which was built without "
            "MPI: install Open MPI and build again, or use the communicator native.\n");
#endif
#if !defined(DDP_CUDA)
    REQUIRE(error_of({"--ranks", "1", "--kind", "nccl"}) ==
            "error: rank 0: The communicator nccl needs GPUs, and this program was built for a "
            "CPU: use the communicator native or mpi.\n");
#elif !defined(DDP_NCCL)
    REQUIRE(error_of({"--ranks", "1", "--kind", "nccl"}) ==
            "error: rank 0: The communicator nccl is not in this program, which was built without "
            "NCCL: install it (Debian: libnccl-dev) and build again, or use the communicator "
            "native.\n");
#endif
    REQUIRE(error_of({"--ranks", "1", "--kind", "wire"}) ==
            "error: rank 0: There is no communicator 'wire'; there are native, mpi and nccl.\n");
}

}  // namespace ddp::test
