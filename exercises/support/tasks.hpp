#pragma once
// What the test of an exercise is made of. One test source, compiled once, is linked with the stub,
// with the solution, with every mutant and with the reader's own file; so it may fail, and must say
// why in the student's words.
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace ddp::test {

// One or more sentences for the student: what was seen, what is right, and where to look.
class Wrong : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// A Wrong whose words name the cause, so that no other is looked for, as a missing barrier where
// the order of a block's threads makes a difference.
class Explained : public Wrong {
  public:
    using Wrong::Wrong;
};

// One task of an exercise, by the name that the README and the stub give it. `check` returns if it
// is solved; otherwise it throws Wrong, or lets through what the student's code has thrown.
struct Task {
    std::string name;
    std::function<void()> check;
};

// Returns whether this run is the first of several, which ask for the results in one order of a
// block's threads after the other. What does not depend on the order, as a time, only the first
// asks for.
bool is_first_order();

// What a time that is too long may come from as well. exercises/run_task.sh knows these words: a
// task that fails with them on a busy machine is not judged.
inline const std::string may_be_busy = "\n(Or this machine is busy.)";

// Keeps what is asked of the student's code now, one or more sentences, until the next call: if
// that code throws, crashes or does not end, the student is told. An empty text tells nothing. One
// thread calls it.
void trying(const std::string& what);

// Defined by the test of each exercise: its tasks, in the order in which they are to be solved.
std::vector<Task> tasks();

}  // namespace ddp::test
