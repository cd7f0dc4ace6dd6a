#pragma once
// Programs that tests start by every launcher: in their first run the ranks do what --what says.
#include <functional>
#include <string>

#include "05_ranks/world.hpp"

namespace ddp::test {

// The options that all scenarios have. Give them to Options before any of the program's own.
struct ScenarioOptions {
    std::string what;      // --what: which scenario
    int victim = 0;        // --victim: the rank that does something else than the others
    bool catches = false;  // --catch: a failure is shown on purpose, and the program goes on

    void add_to(Options& parser);
};

struct ScenarioRuns {
    std::function<void(Rank&)> first;               // may fail
    std::function<void(Rank&)> after_failure = {};  // the next run, if the first has failed
    std::function<void(Rank&)> at_end = {};         // the last run, in any case
    int repeat = 1;                                 // how often the first run is made
};

// The whole of such a program: parses `options`, starts the ranks and makes the runs that `runs`
// returns, which is called once the options are known. A failure of the first run ends the program
// unless --catch was given; then it is printed as "caught: <first cause>". Returns the exit status.
int scenario_main(int argc, char** argv, Options& parser, ScenarioOptions& asked,
                  const std::function<ScenarioRuns()>& runs);

// Does to this rank what tests ask for: "throw" an exception, "kill" or "stop" its process, be
// "late" until the run has failed. Returns false for "absent" (the rank is to leave its run) and
// true for everything else.
bool misbehave(Rank& rank, const std::string& what);

// Prints LABEL and the texts of all ranks, by rank, on rank 0. All ranks call it.
void show_all(Rank& rank, const std::string& label, const std::string& mine);

}  // namespace ddp::test
