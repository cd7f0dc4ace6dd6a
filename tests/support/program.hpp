#pragma once
// Runs a chapter's program and reads back what it prints and writes.
#include <memory>
#include <string>

#include "common/report/csv.hpp"
#include "tests/common/report/temporary_folder.hpp"
#include "tests/support/child.hpp"
#include "tests/support/text.hpp"

namespace ddp::test {

// A run that ended with status 0. While the object lives, Catch2 prints `output` with every failed
// assertion.
struct ProgramRun {
    // Requires that `result` has status 0.
    explicit ProgramRun(const ChildResult& result);

    // Reads NAME_what.csv, a second file of the same run.
    Csv beside(const std::string& what) const;
    // Returns how often `part` occurs in the output.
    int count(const std::string& part) const { return test::count(output, part); }

    std::string output;                             // stdout and stderr together
    Csv csv;                                        // no rows if the program wrote no file
    std::shared_ptr<const TemporaryFolder> folder;  // where the program's files are

  private:
    std::shared_ptr<const void> shown_;
};

class Program {
  public:
    // The program at `path`, with the words `always` before those of each call.
    explicit Program(const std::string& path, const Words& always = {});

    // Runs the program with a --csv file of its own. Requires status 0.
    ProgramRun run(const Words& words = {}) const;
    // Returns the output of a call that the program refuses. Requires a single line, and `status`:
    // 2 for a wrong option, 1 for what the program finds out later.
    std::string refusal(const Words& words, int status = 2) const;
    // Runs the program and requires nothing.
    ChildResult call(const Words& words) const;

  private:
    Words command_;
};

}  // namespace ddp::test
