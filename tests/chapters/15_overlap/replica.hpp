#pragma once
// One rank of a small training run, for tests of what happens within a step.
#include <string>
#include <vector>

#include "03_network/layers/without_parameters.hpp"
#include "03_network/linear.hpp"
#include "15_overlap/ddp.hpp"
#include "tests/chapters/support/golden_training.hpp"
#include "tests/chapters/support/replicas.hpp"

namespace ddp::test {

// head(a(x) + relu(b(x))): two branches between the pictures and the loss.
class Branches : public Module {
  public:
    Branches(Device& device, Random& random);
    Variable forward(Variable input) override;
    Parameters parameters() const override;

    bool b_comes_first = false;  // then a's gradients are ready before b's
    bool leaves_out_b = false;   // head(a(x))

  private:
    Flatten flatten_;
    Linear a_, b_;
    Relu relu_;
    Linear head_;
};
std::unique_ptr<Module> make_branches(Device& device, Random& random);

// A convolution and a BatchNorm, which has buffers, and a layer after them.
std::unique_ptr<Module> make_normed(Device& device, Random& random);

// Each bucket that was sent.
struct Sent {
    std::string name;
    std::size_t size;
    bool operator==(const Sent&) const = default;
};

// Seeds differ from rank to rank of its group. Each step has other samples, and each rank its own.
struct Replica {
    Replica(Rank& rank, const MakeModel& make_model, const DdpOptions& options = {},
            const std::optional<Group>& group = {});

    // Returns the loss of two samples.
    Variable forward();
    void clear();
    // forward, backward, clear: the gradients are gone.
    void step();
    // Returns the gradient of a parameter; empty if it is absent.
    std::vector<float> gradient(const std::string& parameter);
    Parameter& parameter(const std::string& name);
    // Waits until everything that the rank has enqueued is done.
    void synchronize() { communicator->synchronize(device.stream()); }

    Rank& rank;
    Device& device;
    const std::unique_ptr<Module> model;
    const std::unique_ptr<Communicator> communicator;
    DistributedDataParallel ddp;
    std::vector<Sent> sent;  // all that was sent so far
    Tape tape;

  private:
    int samples_ = 0;
};

}  // namespace ddp::test
