#pragma once
// PyTorch as a subprocess: tests/golden/pytorch_train.py.
#include <optional>
#include <string>

#include "tests/bench/10_nodes/benchmark_subprocess.hpp"

namespace ddp {

// Starts the script with the interpreter `python`, or with the first python3 that has PyTorch if it
// is empty. Returns nothing if there is no PyTorch, or if the script is not found. Several ranks
// are processes on Gloo with a `wrapper` around the model: "ddp" or "fully_shard". Where this
// program's kernels run on a GPU, PyTorch's do, too; that takes one rank.
std::optional<BenchmarkSubprocess> start_pytorch(const std::string& python,
                                                 const std::string& model, int batch, int ranks,
                                                 const std::string& wrapper = "ddp");

}  // namespace ddp
