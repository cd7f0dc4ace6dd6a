#pragma once
// What becomes of a file that is read while it is written, as a supervisor's next job would read
// it.
#include "17_checkpoint_failover/atomic_save.hpp"

namespace ddp {

struct Reads {
    int all = 0;
    int torn = 0;
};

// `writers` threads write one checkpoint again and again, each its own version of it, while another
// reads it: into the file itself, or by save_atomically.
Reads read_while_written(Folder& folder, int writers, bool atomically);

// Both ways, as a table.
void show_torn_files(int ranks);

}  // namespace ddp
