// The exercise divide: one more operation for the tape. Read exercises/01_sgd/README.md first.
#include "exercises/01_sgd/divide.hpp"

#include <algorithm>
#include <stdexcept>

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// stub
//: Your kernels go here: 01_sgd/operations.cu shows how those of multiply look.
__global__ void divide_forward(std::size_t n, const float* a, const float* b, float* quotient) {
    for (std::size_t i : grid_range(n))
        quotient[i] = a[i] / b[i];
}

// da (+)= upstream / b
__global__ void numerator_backward(std::size_t n, const float* upstream, const float* b, float* da,
                                   bool accumulate) {
    for (std::size_t i : grid_range(n)) {
        const float contribution = upstream[i] / b[i];
        da[i] = accumulate ? da[i] + contribution : contribution;
    }
}

// db (+)= - upstream a / b^2. The factor a / b is the quotient from forward.
__global__ void denominator_backward(std::size_t n, const float* upstream, const float* quotient,
                                     const float* b, float* db, bool accumulate) {
    for (std::size_t i : grid_range(n)) {
        const float contribution = -upstream[i] * quotient[i] / b[i];
        db[i] = accumulate ? db[i] + contribution : contribution;
    }
}
// end stub

}  // namespace

Variable divide(Variable a, Variable b) {
    // stub: forward
    //: Task backward is solved here as well, in the function that tape->record() takes as its last
    //: argument. Until then that function may be empty:
    //: [](const Tensor&, Tape::InputGradients&) {}
    if (a.value().shape() != b.value().shape())
        throw std::invalid_argument("divide needs two tensors of one shape, not " +
                                    to_string(a.value().shape()) + " and " +
                                    to_string(b.value().shape()));
    Device& device = a.tape->device();
    const Tensor quotient(device, a.value().shape());
    const std::size_t n = quotient.size();
    launch(device.stream(), grid_for(n), divide_forward, n, a.value().data(), b.value().data(),
           quotient.data());
    return a.tape->record(
        "divide", quotient, {a, b},
        [n, quotient, b = b.value()](const Tensor& upstream, Tape::InputGradients& inputs) {
            Stream& stream = upstream.device().stream();
            if (inputs.is_wanted(0)) {
                const GradientTarget da = inputs.target(0);
                launch(stream, grid_for(n), numerator_backward, n, upstream.data(), b.data(),
                       da.tensor.data(), da.accumulate);
            }
            if (inputs.is_wanted(1)) {
                const GradientTarget db = inputs.target(1);
                launch(stream, grid_for(n), denominator_backward, n, upstream.data(),
                       quotient.data(), b.data(), db.tensor.data(), db.accumulate);
            }
        });
    // end stub
}

std::vector<std::string> final_order(const Tape& tape, Variable loss) {
    // stub: final_order
    //: tape.nodes() is the record, in the order of forward. Only the nodes that the loss depends
    //: on count.
    const std::vector<Tape::Node>& nodes = tape.nodes();
    std::vector<bool> counts(nodes.size(), false);
    counts.at(static_cast<std::size_t>(loss.node)) = true;
    for (std::size_t i = nodes.size(); i-- > 0;)
        if (counts[i])
            for (const int input : nodes[i].inputs)
                counts[static_cast<std::size_t>(input)] = true;

    // Backward visits last the node that forward recorded first.
    std::vector<std::string> names;
    for (std::size_t i = 0; i < nodes.size(); i++) {
        if (!counts[i])
            continue;
        for (std::size_t k = nodes[i].inputs.size(); k-- > 0;) {
            const Tape::Node& input = nodes[static_cast<std::size_t>(nodes[i].inputs[k])];
            if (input.parameter && input.needs_gradient &&
                std::ranges::find(names, input.parameter->name) == names.end())
                names.push_back(input.parameter->name);
        }
    }
    std::ranges::reverse(names);
    return names;
    // end stub
}

}  // namespace ddp
