#include "shadow.hpp"

#include <cstdio>

namespace cuda_on_cpu {
namespace {

void say_that_it_is_full() {
    static std::atomic_flag is_said;
    if (!is_said.test_and_set())
        std::fprintf(stderr,
                     "cuda_on_cpu: races: one launch touches more memory than can be watched; what "
                     "is beyond that is not looked at\n");
}

}  // namespace

Page* Shadow::page_of(std::uintptr_t address) {
    const std::uintptr_t number = address / Page::bytes;
    Shard& shard = shards_[number % shards_.size()];
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.pages.find(number);
    if (found != shard.pages.end())
        return found->second.get();
    if (Page::bytes_in_use >= max_bytes) {
        say_that_it_is_full();
        return nullptr;
    }
    return (shard.pages[number] = std::make_unique<Page>()).get();
}

}  // namespace cuda_on_cpu
