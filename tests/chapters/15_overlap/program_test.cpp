// The main job on a small data set: what it prints and writes, the same bits under every launcher,
// how it refuses what makes no sense, and how it ends when a rank is killed.
#include <signal.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <thread>

#include "05_ranks/cores.hpp"
#include "common/report/bench.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/chapters/support/pictures.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const std::string path = OVERLAP_PROGRAM;
const Program program(path);

// With a --link of its own a run measures no other one: half of its time.
const Words fast_link{"--link", "100GB/s,1us"};

// Returns the hash of the parameters at the end, which is printed once.
std::string hash_in(const std::string& output) {
    REQUIRE(count(output, "hash ") == 1);
    return last_hash(output);
}

// Returns the length of a step in a timeline, in milliseconds: `overlap` is "on" or "off".
double step_ms(const Csv& timeline, const std::string& overlap) {
    double end = 0;
    for (std::size_t i = 0; i < timeline.rows.size(); i++)
        if (timeline.text(i, "overlap") == overlap)
            end = std::max(end, timeline.number(i, "end_ms"));
    return end;
}

// Returns the process of rank `rank` of the job that reads its pictures from `folder`, or 0.
pid_t process_of(const std::string& rank, const std::string& folder) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string command = contents(entry.path() / "cmdline");
        if (!command.starts_with(path) || command.find(folder) == command.npos)
            continue;
        const std::string environment = '\0' + contents(entry.path() / "environ");
        for (const std::string name : {"RANK", "OMPI_COMM_WORLD_RANK"})
            if (environment.find('\0' + name + "=" + rank + '\0') != environment.npos)
                return std::stoi(entry.path().filename());
    }
    return 0;
}

bool is_there_soon(const std::function<bool()>& is_there) {
    for (const Stopwatch watch; watch.seconds() < 60;) {
        if (is_there())
            return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
}

// Returns whether the run's step over the simulated link is shorter with overlap by most of its
// communication, which is about a third of the step: without overlap it is forward, backward, as
// much communication again, and the optimizer.
bool hides_most(const ProgramRun& run) {
    const Csv timeline = run.beside("link_timeline");
    const double on = step_ms(timeline, "on"), off = step_ms(timeline, "off");
    const std::regex hidden("\non +[0-9.]+ m?s +[0-9.]+ m?s.* (-?[0-9.]+) %\n");
    std::smatch share;
    REQUIRE(std::regex_search(run.output, share, hidden));
    CAPTURE(on, off, share[1].str());
    return on < 0.88 * off && std::stod(share[1]) > 50;
}

}  // namespace

// A whole run, most of whose time is that of the steps over the link: by name only.
TEST_CASE("overlap: the network learns, and the parts of a step are printed and written",
          "[.][link]") {
    const Pictures data(600, 110);
    const TemporaryFolder folder;
    const std::string trace = (folder / "trace.json").string();
    const Words words{"--data", data.folder(),     "--epochs", "3",       "--batch",
                      "12",     "--learning-rate", "0.05",     "--trace", trace};
    const ProgramRun run = program.run(words);
    for (const char* part :
         {"epoch 1  loss ", "epoch 3  loss ", "One step, and one without",
          "backward  communicating  exposed", "A step over a simulated link as slow as backward, ",
          " (medians of 20)", "add and copy the buckets are those", "Memory of a rank",
          "gradients, in 2 buckets  7.11 MiB",
          "The parameters of all 4 ranks are equal to the bit"})
        REQUIRE(run.count(part) == 1);
    REQUIRE(run.count("\ntest accuracy 1.000\n") == 1);
    const Csv& curve = run.csv;
    REQUIRE(curve.rows.size() == 3);
    REQUIRE(curve.number(2, "step") == 3 * 12);
    REQUIRE(curve.number(2, "loss") < 0.5 * curve.number(0, "loss"));
    REQUIRE(curve.number(2, "test_accuracy") == 1);
    const Csv timeline = run.beside("timeline");
    std::map<std::string, int> tracks;
    for (std::size_t i = 0; i < timeline.rows.size(); i++)
        tracks[timeline.text(i, "overlap") + timeline.text(i, "rank") +
               timeline.text(i, "stream")]++;
    REQUIRE(tracks.size() == 16);
    for (const std::string overlap : {"on", "off"}) {
        REQUIRE(tracks[overlap + "0compute"] == 5 + 6 + 2);
        REQUIRE(tracks[overlap + "3communication"] == 2);
    }
    REQUIRE(has(contents(trace), "backward to linear1.weight"));

    const Csv link_timeline = run.beside("link_timeline");
    std::map<std::string, int> buckets;
    for (std::size_t i = 0; i < link_timeline.rows.size(); i++)
        if (link_timeline.text(i, "stream") == "communication")
            buckets[link_timeline.text(i, "overlap") + link_timeline.text(i, "rank")]++;
    // The picture's ranks have a core each, if there are two.
    const int ranks = usable_cores() == 1 ? 4 : std::min(4, usable_cores());
    REQUIRE(run.count(", on " + std::to_string(ranks) + " ranks (medians") == 1);
    REQUIRE(buckets.size() == static_cast<std::size_t>(2 * ranks));
    for (const auto& [step, count] : buckets)
        REQUIRE(count == 8);
    // The link is chosen by a backward that was measured before: on a machine that is busy with
    // something else, one of several tries must do.
    REQUIRE((hides_most(run) || hides_most(program.run(words)) || hides_most(program.run(words))));
}

TEST_CASE("overlap: without a link to measure it says why, and leaves no old timeline behind") {
    const Pictures data(120, 20);
    const TemporaryFolder folder;
    const std::string csv = (folder / "run.csv").string();  // the same for all runs
    const Words words{"--data", data.folder(), "--quick", "--batch", "8", "--csv", csv};
    const auto run_with = [&](const Words& more) { return ProgramRun(program.call(words + more)); };
    const ProgramRun quick = run_with({"--ranks", "2"});
    REQUIRE(std::filesystem::exists(folder / "run_link_timeline.csv"));
    // A few steps are drawn, and no share is made of them.
    REQUIRE(quick.count("do not show how much overlap hides") == 1);
    REQUIRE(quick.count("as a share of the most") == 0);
    REQUIRE(run_with({"--ranks", "1"}).count("One rank sends nothing") == 1);
    REQUIRE(!std::filesystem::exists(folder / "run_link_timeline.csv"));
    const ProgramRun linked = run_with({"--ranks", "2", "--link", "1GB/s,50us"});
    REQUIRE(linked.count("went over your own --link") == 1);
    REQUIRE(linked.count("hides little on a CPU") == 0);
    REQUIRE(!std::filesystem::exists(folder / "run_link_timeline.csv"));
}

TEST_CASE("overlap: for each number of ranks one hash, with every launcher, with overlap or not") {
    const Pictures data(240, 30);
    const Words words =
        Words{"--data", data.folder(), "--quick", "--batch", "16", "--seed", "5"} + fast_link;
    std::set<std::string> hashes;
    for (const int ranks : {1, 2, 3, 4}) {
        CAPTURE(ranks);
        const Words threads = words + Words{"--ranks", std::to_string(ranks)};
        const std::string hash = hash_in(program.run(threads).output);
        hashes.insert(hash);
        if (ranks != 3)
            continue;  // a job takes seconds: 3 ranks meet every launcher
        REQUIRE(hash_in(program.run(threads + Words{"--no-overlap"}).output) == hash);
        REQUIRE(hash_in(program.run(threads + Words{"--graph"}).output) == hash);
        for (const Launch& launch : launches(path, ranks)) {
            CAPTURE(launch.name);
            const ProgramRun job = run_job(launch, words);
            REQUIRE(hash_in(job.output) == hash);
            REQUIRE(job.count("test accuracy") == 2);  // of the epoch, and at the end
        }
    }
    REQUIRE(hashes.size() == 4);
    const ProgramRun other = program.run(Words{"--ranks", "2"} + words + Words{"--seed", "6"});
    REQUIRE(!hashes.contains(hash_in(other.output)));
    REQUIRE(nothing_is_left(path));
}

TEST_CASE("overlap: buckets of all sizes, both models, and MPI") {
    const Pictures data(120, 20);
    const Words words =
        Words{"--data", data.folder(), "--quick", "--batch", "8", "--ranks", "2"} + fast_link;
    // PyTorch's sizes: the first bucket is closed after linear2, although its cap is 1 MiB.
    REQUIRE(program.run(words + Words{"--default-caps"}).count("gradients, in 2 buckets") == 1);
    REQUIRE(program.run(words + Words{"--cap", "25"}).count("gradients, in 1 bucket ") == 1);
    REQUIRE(program.run(words + Words{"--hook", "noop"}).count("Nothing was sent") == 1);
    // Seven steps; of them a graph makes the last three.
    for (const Words& more : {Words{"--cap", "4096", "--hook", "bfloat16"}, Words{"--model", "cnn"},
                              Words{"--cap", "0", "--link", "1GB/s,50us"}}) {
        const ProgramRun run = program.run(words + more);
        REQUIRE(hash_in(program.run(words + more + Words{"--graph"}).output) ==
                hash_in(run.output));
    }
    REQUIRE(count(program.refusal(words + Words{"--communicator", "mpi"}, 1), "ommunicator mpi") ==
            1);
    if (!has_mpirun() || !processes_can_run_kernels(3))
        return;
    const Words mpi{"--data", data.folder(), "--quick", "--batch", "8", "--communicator", "mpi"};
    const ChildResult result = start(launches(path, 3)[1], mpi);
    CAPTURE(result.output);
    REQUIRE(result.exit_code == 0);
    REQUIRE(hash_in(result.output) != "");
}

TEST_CASE("overlap: fewer pictures than the demonstrations' own batches take") {
    const Pictures data(7, 4);
    program.run(Words{"--data", data.folder(), "--ranks", "3", "--batch", "2", "--quick"} +
                fast_link);
}

TEST_CASE("overlap: what makes no sense is refused in one sentence") {
    const Pictures data(600, 20);
    const Words four{"--data", data.folder(), "--ranks", "4", "--quick"};
    REQUIRE(program.refusal(four + Words{"--batch", "151"}) ==
            "error: --batch 151 is more than the 150 samples that each of 4 ranks has: take a "
            "smaller batch or fewer ranks.\n");
    REQUIRE(program.refusal(four + Words{"--batch", "60000"})
                .starts_with("error: --batch 60000 is more"));
    program.run(four + Words{"--batch", "150"} + fast_link);
    for (const Words& other : {Words{"--detect-anomaly"}, Words{"--hook", "power_sgd"}})
        REQUIRE(has(program.refusal(Words{"--graph"} + other), other.back()));
    REQUIRE(has(program.refusal(four + Words{"--graph", "--shape", "2x2"}, 1),
                "--graph needs the communicator native on one node"));
    REQUIRE(program.refusal({"--cap", "-1"}) ==
            "error: --cap needs a whole number from 0 to 4096, not '-1'.\n");
    REQUIRE(program.refusal({"--learning-rate", "nan"}) ==
            "error: --learning-rate needs a number from 1e-12 to 1e+06, not 'nan'.\n");
    REQUIRE(count(program.refusal({"--data", "/nonexistent"}, 1), "was not found") == 1);
    REQUIRE(count(program.refusal({"--data", "/nonexistent", "--processes", "3"}, 1),
                  "was not found") == 1);
    std::filesystem::resize_file(data / "train-images-idx3-ubyte", 5000);
    REQUIRE(count(program.refusal(four, 1), "train-images-idx3-ubyte") == 1);
}

TEST_CASE("overlap: steps that are too long end the run in one sentence") {
    const Pictures data(240, 20);
    const Words words{"--data", data.folder(), "--batch", "12", "--learning-rate", "1e6"};
    const std::regex sentence(
        "error: rank [0-2].*: the loss is no longer a number at step [0-9]+: the steps are too "
        "long; try a smaller --learning-rate\n");
    for (const std::string how : {"--ranks", "--processes"})
        if (how == "--ranks" || processes_can_run_kernels(3))
            REQUIRE(std::regex_match(program.refusal(words + Words{how, "3"}, 1), sentence));
    const std::regex anomaly(
        "error: rank [0-2].*: the gradient of 'linear[1-3].(weight|bias)' is infinite or no number "
        "at element [0-9]+ of [0-9]+: the steps are too long, or the loss divides by zero\n");
    REQUIRE(std::regex_match(program.refusal(words + Words{"--ranks", "3", "--detect-anomaly"}, 1),
                             anomaly));
}

TEST_CASE("overlap: a rank that is killed in the middle of the training is named") {
    if (!processes_can_run_kernels(4))
        return;
    const Pictures data(240, 20);
    for (const Launch& launch : launches(path, 3)) {
        const std::string rank = launch.name == "launcher" ? "1" : "0";
        const TemporaryFolder folder;
        const std::string csv = (folder / "run.csv").string();
        const Words words{"--data", data.folder(), "--epochs", "10000",     "--batch",
                          "16",     "--csv",       csv,        "--timeout", "5"};
        std::future<ChildResult> job =
            std::async(std::launch::async, [&] { return start(launch, words, 120); });
        CAPTURE(rank, launch.name);
        // The header and two epochs.
        REQUIRE(is_there_soon([&] { return count(contents(csv), "\n") >= 3; }));
        const pid_t process = process_of(rank, data.folder());
        REQUIRE(process > 0);
        kill(process, SIGKILL);
        const Stopwatch watch;
        const ChildResult result = job.get();
        CAPTURE(result.output, watch.seconds());
        REQUIRE(result.exit_code != 0);
        REQUIRE(count(plain(result.output),
                      "error: rank " + rank + " ended without saying why: was it killed?") == 1);
        REQUIRE(count(result.output, "error:") == 1);
        REQUIRE(watch.seconds() < 10);
        REQUIRE(nothing_is_left(path));
    }
}

}  // namespace ddp::test
