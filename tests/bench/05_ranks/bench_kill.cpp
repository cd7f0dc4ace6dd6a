// Kills one of four ranks, and stops one, and shows what the others do: starts itself as a job of
// four processes, twice, and listens:
//
//     launcher  start ─────────────────────────────────────────── all have ended
//     rank 0         begins  met  waits ────────── told   ends
//     rank 3         begins  met  works ───── ✗ killed
//
// Each event is a line with the time by the clock that all processes of a node share.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>

#include "05_ranks/coordinator/connection.hpp"
#include "05_ranks/world.hpp"
#include "common/report/csv.hpp"
#include "common/report/main.hpp"
#include "common/report/process.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

constexpr int ranks = 4;
constexpr const char* fate_variable = "DDP_FATE";  // of the last rank: "killed" or "stopped"

double clock_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// ---- In the job

// Prints an event of this rank, in one piece.
void tell(const std::string& what, double time_s = clock_s()) {
    std::ostringstream line;
    line << "@ " << std::getenv("RANK") << " " << what << " " << std::fixed << time_s << "\n";
    [[maybe_unused]] const ssize_t written =
        write(STDOUT_FILENO, line.str().data(), line.str().size());
}

void work(Rank& rank, const std::string& fate) {
    rank.barrier();
    if (rank.rank() == ranks - 1) {
        usleep(300'000);  // it works, and the others wait for it
        tell(fate);
        kill(getpid(), fate == "killed" ? SIGKILL : SIGSTOP);
    }
    tell("waits");
    try {
        rank.barrier();
    } catch (const RunFailed&) {
        tell("told");
        throw;
    }
}

// ---- Outside

using Events = std::map<std::string, double>;  // name, seconds since the job was started

struct Run {
    std::vector<Events> of_rank = std::vector<Events>(ranks);
    double ended_s = 0;
};

// Starts the job, and returns its events when all of its processes have ended.
Run listen(const std::string& fate, double timeout_s) {
    std::array<Descriptor, 2> output = make_pipe();
    const double start_s = clock_s();
    const pid_t job =
        start_process({std::filesystem::read_symlink("/proc/self/exe"), "--processes",
                       std::to_string(ranks), "--timeout", format_fixed(timeout_s, 3)},
                      {.environment = environment_with({fate_variable + ("=" + fate)}),
                       .output = output[1].number(),
                       .signal_at_end = SIGKILL});
    output[1] = Descriptor();  // the job has it
    std::string text;
    char bytes[4096];
    for (ssize_t count; (count = read(output[0].number(), bytes, sizeof bytes)) > 0;)
        text.append(bytes, static_cast<std::size_t>(count));
    Run run;
    waitpid(job, nullptr, 0);
    run.ended_s = clock_s() - start_s;
    std::istringstream lines(text);
    std::size_t rank = 0;
    double time_s = 0;
    for (std::string sign, what; lines >> sign >> rank >> what >> time_s;)
        run.of_rank.at(rank)[what] = time_s - start_s;
    return run;
}

void write_lanes(CsvWriter& csv, const std::string& fate, const Run& run) {
    csv.row({fate, "launcher", "watching", 0, run.ended_s});
    for (std::size_t r = 0; r < ranks; r++) {
        const Events& events = run.of_rank[r];
        const auto at = [&](const std::string& name) {
            return events.contains(name) ? events.at(name) : run.ended_s;
        };
        const auto lane = [&](const std::string& what, double begin_s, double end_s) {
            csv.row({fate, "rank " + std::to_string(r), what, begin_s, end_s});
        };
        lane("meeting", at("begins"), at("met"));
        if (r + 1 == ranks) {
            lane("working", at("met"), at(fate));
            if (fate == "stopped")
                lane("stopped", at(fate), run.ended_s);
        } else {
            lane("waiting", at("waits"), at("told"));
            lane("ending", at("told"), at("ends"));
        }
    }
}

int observe(const CommonOptions& common) {
    const double timeout_s = common.quick ? 1 : 2;
    CsvWriter csv(common.csv, {"fate", "lane", "what", "begin_s", "end_s"});
    Table table(
        "How long after it the others know, and all have ended",
        {"rank " + std::to_string(ranks - 1) + " is", "told first", "told last", "all have ended"});
    for (const std::string fate : {"killed", "stopped"}) {
        const Run run = listen(fate, timeout_s);
        write_lanes(csv, fate, run);
        const double from_s = run.of_rank.back().at(fate);
        double first_s = run.ended_s, last_s = 0;
        for (std::size_t r = 0; r + 1 < ranks; r++) {
            first_s = std::min(first_s, run.of_rank[r].at("told"));
            last_s = std::max(last_s, run.of_rank[r].at("told"));
        }
        table.row({fate, format_seconds(first_s - from_s), format_seconds(last_s - from_s),
                   format_seconds(run.ended_s - from_s)});
    }
    table.note("The time-out is " + format_seconds(timeout_s) + ".");
    std::cout << "\n" << table << "\n";
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const double begin_s = clock_s();
    Options parser("bench_kill", "What happens when one of four ranks is killed, or stopped?");
    const char* fate = std::getenv(fate_variable);
    if (fate == nullptr) {
        parser.refuse(
            {"--ranks", "--processes", "--seed", "--data", "--trace", "--link", "--timeout"},
            "this bench starts two jobs of its own");
        return run_main([&] { return observe(parser.parse(argc, argv)); });
    }
    const bool is_rank = std::getenv("RANK") != nullptr;  // otherwise the job's launcher
    if (is_rank)
        tell("begins", begin_s);
    const int status = run_ranks(argc, argv, parser, [&](World& world, const CommonOptions&) {
        tell("met");
        world.run([&](Rank& rank) { work(rank, fate); });
        return 0;
    });
    if (is_rank)
        tell("ends");
    return status;
}
