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
        // How many gradients does each bucket wait for?
        throw NotImplemented("in_order");
    }

    Launch fire(int gradient) override {
        // One bucket may become ready by this, and several may now be launched.
        throw NotImplemented("in_order");
    }

    Launch end_backward() override {
        // Which gradients have not fired?
        throw NotImplemented("unused");
    }

  private:
    const std::vector<int> bucket_of_;  // by gradient
    // Whatever else you need.
};

}  // namespace

std::unique_ptr<ReadyCounter> make_ready_counter(const std::vector<int>& bucket_of) {
    return std::make_unique<Counter>(bucket_of);
}

}  // namespace ddp
