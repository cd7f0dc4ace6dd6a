#pragma once
// Five ways in which ranks come to wait for each other in vain, each with its cure.
#include <string>
#include <vector>

#include "15_unused_parameters/show/training_run.hpp"

namespace ddp {

enum class FailureCase { branch, uneven, order, shapes, caps };
inline constexpr FailureCase all_failure_cases[] = {FailureCase::branch, FailureCase::uneven,
                                                    FailureCase::order, FailureCase::shapes,
                                                    FailureCase::caps};

std::string text_of(FailureCase failure);  // "A branch that one rank does not take"
std::string cure_of(FailureCase failure);

// A rank's part of the training in which it happens, or which is cured of it. With two ranks or
// more the last rank is the one that is different. `timeout_s` is of the waits that are in vain.
Training training_with(FailureCase failure, bool is_cured, int rank, int world_size,
                       double timeout_s);

// Six steps, of which one lacks the first expert on the last rank, one on all ranks, and one on all
// but rank 0.
Routes changing_routes(int world_size);
inline constexpr int step_that_hangs = 2;  // of these

}  // namespace ddp
