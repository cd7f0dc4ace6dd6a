// The race of two threads, seen by the race detector; and the trees, of which one races. For
// the CPU only.
#include <functional>
#include <numeric>

#include "02_kernels/race.hpp"
#include "02_kernels/tree.hpp"
#include "common/gpu/gpu.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/text.hpp"

namespace ddp::test {
namespace {

std::string message_of(const std::function<void()>& run) {
    try {
        run();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

std::string message_of_tree(TreeKernel kernel) {
    std::vector<int> values(8);
    std::iota(values.begin(), values.end(), 1);
    return message_of([&] { sum_of_block(kernel, values); });
}

TEST_CASE("the race of two threads, and which of the trees race") {
    CHECK(message_of([] { race_of_two(true); }) == "");
    CHECK(message_of_tree(TreeKernel::interleaved) == "");
    CHECK(message_of_tree(TreeKernel::sequential) == "");
    CHECK(has(message_of_tree(TreeKernel::without_barriers), "nothing puts one before the other"));
    DDP_CHECK(cudaDeviceReset());  // a device that has failed stays so
    CHECK(has(message_of([] { race_of_two(false); }), "nothing puts one before the other"));
}

}  // namespace
}  // namespace ddp::test
