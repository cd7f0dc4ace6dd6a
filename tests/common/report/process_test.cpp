// Starting a process: its files, its variables, how it ends, and that it ends with the one that has
// started it.
#include "common/report/process.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"

namespace ddp::test {
namespace {

std::array<int, 2> ends_of_pipe() {
    std::array<int, 2> ends{};
    REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
    return ends;
}

// Returns all that comes out of the pipe until nobody can write to it any more, and closes it.
std::string all_of(int read_end) {
    std::string all;
    char bytes[1000];
    for (ssize_t count; (count = read(read_end, bytes, sizeof bytes)) > 0;)
        all.append(bytes, static_cast<std::size_t>(count));
    close(read_end);
    return all;
}

struct ScriptResult {
    int status;
    std::string output;
};

// Runs the shell's `script` with stdout in a pipe.
ScriptResult run_script(const std::string& script, ProcessSettings settings = {}) {
    const std::array<int, 2> output = ends_of_pipe();
    settings.output = output[1];
    const pid_t process = start_process({"sh", "-c", script}, settings);
    close(output[1]);
    const std::string text = all_of(output[0]);
    int status = 0;
    REQUIRE(waitpid(process, &status, 0) == process);
    return {exit_status(status), text};
}

TEST_CASE("a program's status is a shell's") {
    CHECK(run_script("exit 0").status == 0);
    CHECK(run_script("exit 3").status == 3);
    CHECK(run_script("kill -KILL $$").status == 128 + SIGKILL);
}

TEST_CASE("a program that is not there says so, with a shell's status") {
    const std::array<int, 2> error = ends_of_pipe();
    const pid_t process = start_process({"no-such-program-9"}, {.error = error[1]});
    close(error[1]);
    CHECK(all_of(error[0]) == "error: cannot start no-such-program-9: No such file or directory\n");
    int status = 0;
    REQUIRE(waitpid(process, &status, 0) == process);
    CHECK(exit_status(status) == status_of_missing_program);
}

TEST_CASE("a program reads, prints and complains where it is told to") {
    const std::array<int, 2> input = ends_of_pipe(), error = ends_of_pipe();
    REQUIRE(write(input[1], "hello\n", 6) == 6);
    close(input[1]);
    const ScriptResult result =
        run_script("cat; echo alas >&2", {.input = input[0], .error = error[1]});
    close(input[0]);
    close(error[1]);
    CHECK(result.output == "hello\n");
    CHECK(all_of(error[0]) == "alas\n");
    // Nothing to read, and nobody who listens.
    CHECK(run_script("cat; echo alas >&2 && echo fine", {.input = -1, .error = -1}).output ==
          "fine\n");
}

TEST_CASE("of the files of this process a program has only the one that is kept") {
    const std::array<int, 2> kept = ends_of_pipe(), other = ends_of_pipe();
    const auto is_open = [&](int file) {
        return run_script("[ -e /proc/self/fd/" + std::to_string(file) + " ] && echo open",
                          {.kept = kept[0]})
                   .output == "open\n";
    };
    CHECK(is_open(kept[0]));
    CHECK(!is_open(kept[1]));
    CHECK(!is_open(other[0]));
    // Here it is still closed for those that are started next.
    CHECK(
        run_script("[ -e /proc/self/fd/" + std::to_string(kept[0]) + " ] || echo closed").output ==
        "closed\n");
    for (const int file : {kept[0], kept[1], other[0], other[1]})
        close(file);
}

TEST_CASE("a variable takes the place of the one of its name") {
    setenv("DDP_TEST_A", "old", 1);
    setenv("DDP_TEST_AB", "longer", 1);
    const std::string script = "env | grep ^DDP_TEST_ | sort";
    CHECK(run_script(script).output == "DDP_TEST_A=old\nDDP_TEST_AB=longer\n");
    CHECK(run_script(script, {.environment = environment_with({"DDP_TEST_A=new"})}).output ==
          "DDP_TEST_A=new\nDDP_TEST_AB=longer\n");
    unsetenv("DDP_TEST_A");
    unsetenv("DDP_TEST_AB");
}

TEST_CASE("a program leads a group of its own if it is to") {
    const auto leads = [&](const ProcessSettings& settings) {
        const std::string output =
            run_script("cut -d' ' -f5 /proc/$$/stat; echo $$", settings).output;
        const std::size_t end = output.find('\n');
        return output.substr(0, end + 1) == output.substr(end + 1);
    };
    CHECK(!leads({}));
    CHECK(leads({.leads_group = true}));
    // Its number is that of the group at once, before the program itself has begun.
    const pid_t process = start_process({"sleep", "100"}, {.leads_group = true});
    CHECK(kill(-process, SIGKILL) == 0);
    CHECK(waitpid(process, nullptr, 0) == process);
}

// Starts a process that sleeps, prints its number, and is killed.
TEST_CASE("child starts a sleeper and is killed", "[.child]") {
    const bool ends_with_us = std::getenv("DDP_TEST_ENDS_WITH_US") != nullptr;
    const pid_t process = start_process(
        {"sleep", "100"}, {.output = -1, .error = -1, .signal_at_end = ends_with_us ? SIGKILL : 0});
    dprintf(STDOUT_FILENO, "sleeper %d\n", process);
    raise(SIGKILL);
}

TEST_CASE("a program ends with the one that has started it, or goes on alone") {
    for (const bool ends_with_us : {true, false}) {
        const ChildResult result =
            run_child("child starts a sleeper and is killed",
                      ends_with_us ? std::vector<std::string>{"DDP_TEST_ENDS_WITH_US=1"}
                                   : std::vector<std::string>{});
        CHECK(result.signal == SIGKILL);
        const std::size_t at = result.output.find("sleeper ");
        REQUIRE(at != std::string::npos);
        const pid_t sleeper = std::stoi(result.output.substr(at + 8));
        const auto is_there = [&] {  // and has not only to be waited for
            const ScriptResult state =
                run_script("cut -d' ' -f3 /proc/" + std::to_string(sleeper) + "/stat 2>/dev/null");
            return state.status == 0 && state.output != "Z\n" && !state.output.empty();
        };
        if (!ends_with_us) {
            CHECK(is_there());
            kill(sleeper, SIGKILL);
        }
        for (int attempt = 0; is_there() && attempt < 500; attempt++)
            usleep(10'000);
        CHECK(!is_there());
    }
}

}  // namespace
}  // namespace ddp::test
