// The exercise ready_counter: what is sent when. Read exercises/15_overlap/README.md first.
#include "exercises/15_overlap/ready_counter.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace ddp {
namespace {

class Counter : public ReadyCounter {
  public:
    explicit Counter(const std::vector<int>& bucket_of) : bucket_of_(bucket_of) {}

    Launch begin_step() override {
        // stub: in_order
        //: How many gradients does each bucket wait for?
        is_ready_.assign(bucket_of_.size(), false);
        pending_.assign(static_cast<std::size_t>(std::ranges::max(bucket_of_)) + 1, 0);
        for (const int bucket : bucket_of_)
            pending_[static_cast<std::size_t>(bucket)]++;
        next_ = 0;
        return {};
        // end stub
    }

    Launch fire(int gradient) override {
        // stub: in_order
        //: One bucket may become ready by this, and several may now be launched.
        const auto g = static_cast<std::size_t>(gradient);
        if (is_ready_[g])
            throw std::logic_error("gradient " + std::to_string(gradient) +
                                   " is ready twice in one step");
        is_ready_[g] = true;
        pending_[static_cast<std::size_t>(bucket_of_[g])]--;
        Launch launch;
        while (next_ < pending_.size() && pending_[next_] == 0)
            launch.buckets.push_back(static_cast<int>(next_++));
        return launch;
        // end stub
    }

    Launch end_backward() override {
        // stub: unused
        //: Which gradients have not fired?
        Launch all;
        for (std::size_t g = 0; g < is_ready_.size(); g++)
            if (!is_ready_[g]) {
                all.zeros.push_back(static_cast<int>(g));
                const Launch launch = fire(static_cast<int>(g));
                all.buckets.insert(all.buckets.end(), launch.buckets.begin(), launch.buckets.end());
            }
        return all;
        // end stub
    }

  private:
    const std::vector<int> bucket_of_;  // by gradient
    // stub
    //: Whatever else you need.
    std::vector<bool> is_ready_;  // by gradient
    std::vector<int> pending_;    // gradients of each bucket that are not ready
    std::size_t next_ = 0;        // the next bucket to be launched
    // end stub
};

}  // namespace

std::unique_ptr<ReadyCounter> make_ready_counter(const std::vector<int>& bucket_of) {
    return std::make_unique<Counter>(bucket_of);
}

}  // namespace ddp
