#include "tests/bench/15_overlap/pytorch.hpp"

#include "common/gpu/launch.hpp"
#include "common/report/process.hpp"

namespace ddp {
namespace {

// Returns an environment with one thread a rank, which OpenBLAS reads when it is loaded. What the
// user chose for this book's OpenBLAS is not passed on: PyTorch is measured as it is installed.
std::vector<std::string> environment_of_one_thread() {
    std::vector<std::string> all = environment_with({});
    std::erase_if(all, [](const std::string& entry) {
        return entry.starts_with("OPENBLAS_") || entry.starts_with("OMP_NUM_THREADS=");
    });
    all.insert(all.end(), {"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1"});
    return all;
}

}  // namespace

std::optional<BenchmarkSubprocess> start_pytorch(const std::string& python,
                                                 const std::string& model, int batch, int ranks,
                                                 const std::string& wrapper) {
    const auto script = find_in_book("tests/golden/pytorch_train.py");
    if (!script)
        return std::nullopt;
    // Debian's package serves /usr/bin/python3, which may not come first.
    const std::vector<std::string> pythons =
        python.empty() ? std::vector<std::string>{"python3", "/usr/bin/python3"}
                       : std::vector<std::string>{python};
    for (const std::string& each : pythons) {
        // Quiet: a python3 without PyTorch is no error.
        std::optional<BenchmarkSubprocess> pytorch = BenchmarkSubprocess::start(
            {each, script->string(), "--rounds", "--model", model, "--batch", std::to_string(batch),
             "--ranks", std::to_string(ranks), "--wrapper", wrapper, "--device",
             kernels_run_on_cpu ? "cpu" : "cuda"},
            environment_of_one_thread(), true);
        if (pytorch)
            return pytorch;
    }
    return std::nullopt;
}

}  // namespace ddp
