#pragma once
// Reads a checkpoint while it is written, as the supervisor's next job would.
#include "19_checkpoint_failover/atomic_save.hpp"

namespace ddp {

struct Reads {
    int all = 0;
    int torn = 0;
};

// Reads a checkpoint again and again while `writers` threads write it, each its own version: into
// the file itself, or with save_atomically. Returns how many of the reads found a torn file.
Reads read_while_written(Folder& folder, int writers, bool atomically);

// Prints the result of both as a table; `ranks` threads write into the file itself.
void show_torn_files(int ranks);

}  // namespace ddp
