#include "tests/chapters/support/worlds.hpp"

namespace ddp::test {

CommonOptions thread_options(int ranks, double timeout_s) {
    CommonOptions options;
    options.ranks = ranks;
    options.timeout_s = timeout_s;
    return options;
}

std::string failure_of(World& world, const std::function<void(Rank&)>& work) {
    try {
        world.run(work);
        return "";
    } catch (const RunFailed& failure) {
        return failure.what();
    }
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace ddp::test
