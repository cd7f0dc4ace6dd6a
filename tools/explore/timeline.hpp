#pragma once
// An execution as text: a column for each rank, and a line for each event, in the order in which
// they happened.
#include <string>

#include "tools/explore/engine/explore.hpp"

#include "tools/explore/places.hpp"

namespace ddp {

// Returns what has failed, as a sentence; "" if nothing has.
std::string text_of_failure(const cuda_on_cpu::Exploration& exploration, const Places& places);

// Returns the last events of the execution that failed; "" if none has.
std::string timeline_of(const cuda_on_cpu::Exploration& exploration, const Places& places,
                        int ranks);

}  // namespace ddp
