// The memory that every step uses again: a step like one before allocates nothing, and steps of
// many sizes do not add up.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "01_sgd/tensor.hpp"
#include "common/data/random.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/text.hpp"

namespace ddp::test {
namespace {

// Allocates what a step with sentences of this length keeps until its end: twelve tensors of other
// widths. One more of each size is free again at once.
void step_of_length(Device& device, std::size_t length) {
    std::vector<std::shared_ptr<std::byte>> kept;
    for (std::size_t width = 1; width <= 12; width++) {
        kept.push_back(device.allocate(length * width * 700, Where::current()));
        device.allocate(length * width * 700, Where::current());
    }
}

}  // namespace

TEST_CASE("device: a step like one before finds all of its blocks") {
    Device device;
    step_of_length(device, 10);
    const std::size_t after_one = device.memory().allocations;
    REQUIRE(after_one > 12);
    for (int step = 0; step < 5; step++)
        step_of_length(device, 10);
    REQUIRE(device.memory().allocations == after_one);
    REQUIRE(device.memory().live_bytes == 0);
}

TEST_CASE("device: steps of all lengths take little more memory than the longest") {
    Device longest;
    step_of_length(longest, 64);
    Device device;
    Random random(1);
    for (int step = 0; step < 500; step++)
        step_of_length(device, 1 + random.below(64));
    REQUIRE(device.memory().peak_bytes == longest.memory().peak_bytes);
    REQUIRE(device.memory().reserved_bytes < 3 * longest.memory().reserved_bytes);
}

TEST_CASE("device: a block is at most twice as large as what is asked for") {
    Device device;
    const std::byte* large = device.allocate(4096, Where::current()).get();
    REQUIRE(device.allocate(2047, Where::current()).get() == large);
    REQUIRE(device.allocate(1536, Where::current()).get() != large);
    // Of two that are large enough, the smaller one.
    const std::byte* middle = device.allocate(3072, Where::current()).get();
    REQUIRE(middle == large);
    std::shared_ptr<std::byte> owner = device.allocate(4096, Where::current());
    REQUIRE(owner.get() == large);
    const std::byte* other = device.allocate(3072, Where::current()).get();
    owner.reset();
    REQUIRE(device.allocate(2560, Where::current()).get() == other);
}

TEST_CASE("device: strict mode names the tensor that a kernel writes past, and who made it") {
    if (!kernels_run_on_cpu)
        return;  // a GPU says nothing
    int line = 0;
    const std::string message = message_of([&] {
        Device device(1 << 20);  // all blocks side by side in one allocation
        line = __LINE__ + 1;
        const std::shared_ptr<std::byte> memory = device.allocate(300, Where::current());
        const Tensor neighbour(device, {3});
        Tensor wrong(device, {200}, std::reinterpret_pointer_cast<float>(memory));
        fill(wrong, 1.0f);  // 800 bytes, and the block has 512
        device.stream().synchronize();
    });
    DDP_CHECK(cudaDeviceReset());
    INFO(message);
    REQUIRE(has(message, "wrote 212 bytes past the end of the 300 bytes that "));
    REQUIRE(has(message, "device_test.cpp:" + std::to_string(line) + " was given"));
}

}  // namespace ddp::test
