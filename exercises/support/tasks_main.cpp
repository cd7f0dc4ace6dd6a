// The main of every exercise's program: `program --list` names the tasks, `program TASK` checks one
// of them. Its exit status: 0 solved (and "passed" is the last line: a program that ends early has
// not said so), 2 a wrong call, 3 not implemented, 4 wrong, 5 something has thrown, 6 wrong, and
// the words name the cause. With DDP_GRADED in the environment it also reports every assertion that
// has held (solutions/grade.sh).
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exercises/not_implemented.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

// What a grader believes (solutions/grade.sh). Through one pipe it hands out a random number;
// every assertion that holds sends it back through another pipe, with the line where it stands, and
// only then comes the next number. So the numbers of a whole run are never in this process.
constexpr int from_grader = 3, to_grader = 4;

constinit bool is_graded = false;

// Before the constructors of every other file. What an answer might start gets no pipe.
__attribute__((constructor(101))) void expect_grader() {
    is_graded = std::getenv("DDP_GRADED") != nullptr;
    for (const int pipe : {from_grader, to_grader})
        if (is_graded)
            fcntl(pipe, F_SETFD, FD_CLOEXEC);
}

// Returns the number that the grader has handed out, or "none" if it has no more.
std::string number_from_grader() {
    std::string number(33, ' ');  // 32 digits and a newline
    for (std::size_t got = 0; got < number.size();) {
        const ssize_t more = read(from_grader, number.data() + got, number.size() - got);
        if (more <= 0)
            return "none";
        got += static_cast<std::size_t>(more);
    }
    number.pop_back();
    return number;
}

// What trying() has been told last, where a handler of signals may read it.
std::array<char, 1024> tried;

// Tells what was tried. The signal comes again when this returns, and ends the program as usual.
void tell_what_was_tried(int signal) {
    [[maybe_unused]] const ssize_t written =
        write(STDOUT_FILENO, tried.data(), std::strlen(tried.data()));
    std::raise(signal);
}

// Listens to what ends a program whose code is wrong. SIGTERM is what `timeout` sends.
void listen_to_ends() {
    static std::array<char, 64 << 10> stack;  // an endless recursion has used up the other one
    stack_t own{};
    own.ss_sp = stack.data();
    own.ss_size = stack.size();
    sigaltstack(&own, nullptr);
    struct sigaction action {};
    action.sa_handler = tell_what_was_tried;
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_ONSTACK;
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGTERM})
        sigaction(signal, &action, nullptr);
}

// Returns the words of an error with the kernel's own sentence first, if it is about a kernel:
// "cudaStreamSynchronize at F:1 failed: ERROR, words: kernel K, launched at G:2: what it has done".
std::string cause_first(const std::string& words) {
    const std::string before_kernel = ": kernel ";
    const std::size_t failed = words.find(" failed: "), kernel = words.find(before_kernel, failed);
    if (failed == std::string::npos || kernel == std::string::npos)
        return words;
    return "Kernel " + words.substr(kernel + before_kernel.size()) + "\n(" +
           words.substr(0, kernel) + ")";
}

int check(const Task& task) {
    try {
        task.check();
        held();
        std::puts("passed");
        return 0;
    } catch (const NotImplemented& missing) {
        std::puts(missing.what());
        return 3;
    } catch (const Explained& wrong) {
        std::puts(wrong.what());
        return 6;
    } catch (const Wrong& wrong) {
        std::puts(wrong.what());
        return 4;
    } catch (const std::logic_error& error) {  // no test throws one
        std::printf(
            "Your code, or a function that it has called, has thrown an exception: %s\n%s\n",
            error.what(), tried.data());
        return 5;
    } catch (const std::exception& error) {
        std::printf("%s\n%s\n", cause_first(error.what()).c_str(), tried.data());
        return 5;
    } catch (...) {
        std::printf("Your code has thrown something that is not a std::exception.\n%s\n",
                    tried.data());
        return 5;
    }
}

int run(const std::string& wanted) {
    const std::vector<Task> all = tasks();
    if (wanted == "--list") {
        for (const Task& task : all)
            std::puts(task.name.c_str());
        return 0;
    }
    const auto found = std::ranges::find(all, wanted, &Task::name);
    if (found != all.end()) {
        listen_to_ends();
        return check(*found);
    }
    std::fprintf(stderr, "There is no task '%s'; call it with --list to see their names.\n",
                 wanted.c_str());
    return 2;
}

}  // namespace

void held(const std::source_location& where) {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    if (!is_graded)
        return;
    const std::string report =
        number_from_grader() + " " + where.file_name() + ":" + std::to_string(where.line()) + "\n";
    if (write(to_grader, report.data(), report.size()) != static_cast<ssize_t>(report.size()))
        std::abort();
}

bool is_first_order() {
    const char* wanted = std::getenv("DDP_MEASURES");
    return wanted == nullptr || std::string(wanted) != "no";
}

void trying(const std::string& what) {
    tried[what.copy(tried.data(), tried.size() - 1)] = '\0';
}

}  // namespace ddp::test

// What std::atomic's wait() becomes in an answer that is graded, instead of syscall(): of all calls
// of the system this one, to wait for a value in memory, or to wake those who do.
extern "C" long ddp_futex(long number, void* address, long operation, long value, void* time,
                          void* second, long mask) {
    if (number != SYS_futex)
        std::abort();
    return syscall(number, address, operation, value, time, second, mask);
}

int main(int argc, char** argv) {
    return ddp::test::run(argc == 2 ? argv[1] : "");
}
