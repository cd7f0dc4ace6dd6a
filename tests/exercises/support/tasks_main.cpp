// The main of every exercise's program: `program --list` names the tasks, `program TASK` checks one
// of them. Its exit status: 0 solved (and "passed" is the last line: a program that ends early has
// not said so), 2 a wrong call, 3 not implemented, 4 wrong, 5 something has thrown.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "exercises/not_implemented.hpp"
#include "tests/exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

int check(const Task& task) {
    try {
        task.check();
        std::puts("passed");
        return 0;
    } catch (const NotImplemented& missing) {
        std::puts(missing.what());
        return 3;
    } catch (const Wrong& wrong) {
        std::puts(wrong.what());
        return 4;
    } catch (const std::exception& error) {
        std::puts(error.what());
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
    if (found != all.end())
        return check(*found);
    std::fprintf(stderr, "There is no task '%s'; call it with --list to see their names.\n",
                 wanted.c_str());
    return 2;
}

}  // namespace
}  // namespace ddp::test

int main(int argc, char** argv) {
    return ddp::test::run(argc == 2 ? argv[1] : "");
}
