#pragma once
// Explores a case: launches its kernels on ranks of this process, and hands them to the engine.
#include <optional>
#include <string>

#include "tools/explore/cases.hpp"

namespace ddp {

struct ExploredResult {
    cuda_on_cpu::Exploration exploration;
    std::string failure;  // "race at rank 1's output[64]: 1 writes, 0 reads"; "" if nothing failed
};

// Explores a case for at most so many seconds: as it is, or as if all of its loads and stores of
// the order `without` were relaxed.
ExploredResult explore_case(const ExploredCase& explored, std::optional<std::memory_order> without,
                            double max_seconds);

}  // namespace ddp
