// The race that the README shows: the tree without barriers, seen by the race detector. For the CPU
// only.
#include <fstream>
#include <numeric>
#include <sstream>

#include "02_kernels/tree.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/text.hpp"

namespace ddp::test {
namespace {

// Returns the words of a text with one space between them.
std::string words_of(std::istream&& text) {
    std::string all;
    for (std::string word; text >> word;)
        all += (all.empty() ? "" : " ") + word;
    return all;
}

std::string message_of(TreeKernel kernel) {
    std::vector<int> values(8);
    std::iota(values.begin(), values.end(), 1);
    try {
        sum_of_block(kernel, values);
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

TEST_CASE("the trees have no race, and the one without barriers has that of the README") {
    CHECK(message_of(TreeKernel::interleaved) == "");
    CHECK(message_of(TreeKernel::sequential) == "");
    const std::string message = message_of(TreeKernel::without_barriers);
    INFO(message);
    const std::size_t race = message.find("thread (");
    REQUIRE(race != std::string::npos);
    const std::string words = words_of(std::istringstream(message.substr(race)));
    CHECK(has(words_of(std::ifstream(DDP_CHAPTER_README)), words));
}

}  // namespace
}  // namespace ddp::test
