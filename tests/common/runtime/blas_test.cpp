// The kernels with which OpenBLAS multiplies: chosen by the program, before main.
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "cublas_v2.h"
#include "tests/support/catch.hpp"

extern "C" char* openblas_get_corename();

namespace ddp::test {
namespace {

TEST_CASE("blas: on Zen 4 products are computed by the kernels for AVX2, unless the user chooses") {
    cublasHandle_t handle;
    REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
    const std::string kernels = openblas_get_corename();
    std::ostringstream cpu;
    cpu << std::ifstream("/proc/cpuinfo").rdbuf();
    const bool is_zen_4 = std::regex_search(cpu.str(), std::regex("AuthenticAMD")) &&
                          std::regex_search(cpu.str(), std::regex("cpu family\\s*: 25\n")) &&
                          std::regex_search(cpu.str(), std::regex("\\bavx512f\\b"));
    if (is_zen_4 && std::getenv("OPENBLAS_CORETYPE") == nullptr)
        REQUIRE(kernels == "Haswell");
    REQUIRE_FALSE(kernels.empty());
}

}  // namespace
}  // namespace ddp::test
