#pragma once
// Jobs of processes, started as a person would start them.
#include <set>
#include <string>
#include <vector>

#include "tests/support/program.hpp"

namespace ddp::test {

bool has_mpirun();

// Whether the kernels of so many processes can run at the same time here: on a CPU, with a GPU for
// each process, or under NVIDIA's MPS. If not, prints what is left out, as a skip.
bool processes_can_run_kernels(int processes);

// A command that starts a program with ranks: the words up to the program, and those that follow
// it.
struct Launch {
    std::string name;
    Words before, after;
};

// Our launcher, and mpirun where there is one.
std::vector<Launch> launches(const std::string& program, int ranks);
// The same for programs with kernels: none where those of so many processes cannot run, which is
// then printed as a skip.
std::vector<Launch> launches_with_kernels(const std::string& program, int ranks);

ChildResult start(const Launch& launch, const Words& words, int timeout_s = 60,
                  const Words& environment = {});

// Starts a job that must end with status 0.
ProgramRun run_job(const Launch& launch, const Words& words);

// Without what differs from run to run: numbers of processes, and the host's name. Also without
// what Open MPI 5's mpirun adds when a rank has failed: lines between dashes, and one of PMIx.
std::string plain(const std::string& text);

// Whether no process of `program` and this user is there; those that were ended a moment ago have
// some time.
bool nothing_is_left(const std::string& program);

// What this user's processes share by name, but for Open MPI's, which comes and goes with other
// jobs.
std::set<std::string> shared_memory();

}  // namespace ddp::test
