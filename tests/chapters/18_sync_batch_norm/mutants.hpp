#pragma once
// SyncBatchNorm with a typical mistake in it, and what the check against the union says of each.
#include <string>
#include <vector>

#include "tests/chapters/18_sync_batch_norm/equivalence_check.hpp"

namespace ddp::test {

enum class Mistake {
    none,
    mean_of_means,       // every rank's mean weighs as much, however many values it has
    biased_variance,     // the running variance is that of the batch
    local_count,         // the gradient of the input is divided by the rank's own count
    local_sums,          // the sums of the gradients are the rank's own
    empty_is_no_number,  // a rank without a picture divides by zero, and no rank leaves it out
};

MakeNorm make_mistaken(Mistake mistake);

// In words; "" if SyncBatchNorm is BatchNorm on the union, to 1e-5. `found` has one entry for each
// of picture_counts.
std::string cause_of(const std::vector<Differences>& found);

}  // namespace ddp::test
