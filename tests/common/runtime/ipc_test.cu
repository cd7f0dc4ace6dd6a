// Two processes and one allocation of device memory, on a CPU as on a GPU.
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/common/runtime/ipc_memory.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"

namespace ddp::test {
namespace {

TEST_CASE("child maps and answers", "[.child]") {
    int* data = open_handle(std::getenv(handle_number));
    REQUIRE(wrong_in(data, 3) == 0);  // what the parent's kernel wrote
    Stream stream;
    launch(stream, grid_for(element_count), write_index, data, element_count, -5);
    stream.synchronize();
    DDP_CHECK(cudaIpcCloseMemHandle(data));
}

TEST_CASE("two processes see each other's writes") {
    Stream stream;
    Buffer<int> before(77), data(element_count), after(78);  // not the first allocation
    launch(stream, grid_for(element_count), write_index, data.data(), element_count, 3);
    stream.synchronize();
    const ChildResult child =
        run_child("child maps and answers", {handle_number + ("=" + handle_of(data.data()))});
    INFO(child.output);
    REQUIRE(child.exit_code == 0);
    REQUIRE(wrong_in(data.data(), -5) == 0);  // what the child's kernel wrote
}

}  // namespace
}  // namespace ddp::test
