// The main of every exercise's program: `program --list` names the tasks, `program TASK` checks one
// of them. Its exit status: 0 solved (and "passed" is the last line: a program that ends early has
// not said so), 2 a wrong call, 3 not implemented, 4 wrong, 5 something has thrown, 6 wrong, and
// the words name the cause.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include <unistd.h>

#include "exercises/not_implemented.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

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

bool is_first_order() {
    const char* wanted = std::getenv("DDP_MEASURES");
    return wanted == nullptr || std::string(wanted) != "no";
}

void trying(const std::string& what) {
    tried[what.copy(tried.data(), tried.size() - 1)] = '\0';
}

}  // namespace ddp::test

int main(int argc, char** argv) {
    return ddp::test::run(argc == 2 ? argv[1] : "");
}
