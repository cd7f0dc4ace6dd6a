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
            if (!is_ready_[g])
                add_unused(static_cast<int>(g), all);
        return all;
        // end stub
    }

    // stub
    //: Whatever else you need.
    void add_unused(int gradient, Launch& all) {
        all.zeros.push_back(gradient);
        add(gradient, all);
    }
    void add(int gradient, Launch& all) {
        const Launch launch = fire(gradient);
        all.buckets.insert(all.buckets.end(), launch.buckets.begin(), launch.buckets.end());
    }
    // end stub

  private:
    const std::vector<int> bucket_of_;  // by gradient
    // stub
    std::vector<bool> is_ready_;  // by gradient
    std::vector<int> pending_;    // gradients of each bucket that are not ready
    std::size_t next_ = 0;        // the next bucket to be launched
    // end stub
};

// stub
//: A class for static graphs goes here. It may have a Counter within.
// Counts how often hooks fire, and passes a gradient to `counter_` when it is ready.
class StaticGraphCounter : public ReadyCounter {
  public:
    explicit StaticGraphCounter(const std::vector<int>& bucket_of)
        : counter_(bucket_of), in_first_(bucket_of.size()), left_(bucket_of.size()) {}

    Launch begin_step() override {
        Launch launch = counter_.begin_step();
        left_ = in_first_;
        if (is_known_)
            for (std::size_t g = 0; g < in_first_.size(); g++)
                if (in_first_[g] == 0)
                    counter_.add_unused(static_cast<int>(g), launch);
        return launch;
    }

    Launch fire(int gradient) override {
        const auto g = static_cast<std::size_t>(gradient);
        if (!is_known_) {
            in_first_[g]++;
            return {};
        }
        if (left_[g] == 0)
            throw std::logic_error("gradient " + std::to_string(gradient) +
                                   " comes more often than in the first step");
        return --left_[g] == 0 ? counter_.fire(gradient) : Launch{};
    }

    Launch end_backward() override {
        if (is_known_)
            return {};
        is_known_ = true;
        Launch launch;
        for (std::size_t g = 0; g < in_first_.size(); g++)
            if (in_first_[g] == 0)
                counter_.add_unused(static_cast<int>(g), launch);
            else
                counter_.add(static_cast<int>(g), launch);
        return launch;
    }

  private:
    Counter counter_;
    std::vector<int> in_first_, left_;  // firings of each hook: in the first step, still to come
    bool is_known_ = false;
};
// end stub

}  // namespace

std::unique_ptr<ReadyCounter> make_ready_counter(const std::vector<int>& bucket_of) {
    return std::make_unique<Counter>(bucket_of);
}

std::unique_ptr<ReadyCounter> make_static_graph_counter(const std::vector<int>& bucket_of) {
    // stub: static_graph
    //: It is a counter of its own kind.
    return std::make_unique<StaticGraphCounter>(bucket_of);
    // end stub
}

}  // namespace ddp
