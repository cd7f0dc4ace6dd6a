// What a launch asks the system for: nothing. A program that has a getenv of its own is asked in
// place of the C library's.
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "common/gpu/gpu.hpp"
#include "tests/support/catch.hpp"

namespace {

std::atomic<int> asked = 0;

}  // namespace

extern "C" char* getenv(const char* name) {
    asked++;
    const std::size_t length = std::strlen(name);
    for (char** variable = environ; variable != nullptr && *variable != nullptr; variable++)
        if (std::strncmp(*variable, name, length) == 0 && (*variable)[length] == '=')
            return *variable + length + 1;
    return nullptr;
}

namespace ddp::test {
namespace {

__global__ void nothing() {}

TEST_CASE("no launch asks for an environment variable") {
    Stream stream;
    Event event;
    const auto launch_both = [&] {
        launch(stream, {1, 1}, nothing);
        launch_cooperative(stream, {1, 1}, nothing);
        event.record(stream);
        stream.synchronize();
    };
    launch_both();  // the first may: what it learns is kept
    REQUIRE(asked > 0);
    asked = 0;
    launch_both();
    REQUIRE(asked == 0);
}

}  // namespace
}  // namespace ddp::test
