// Local SGD with an average every 4 steps:
//
//     rank 0   step step step step | average | step step step step | average |
//     rank 1   step step step step | average | step step step step | average |
//              no messages           one all-reduce of all parameters
#include "13_async/local_sgd.hpp"

#include <stdexcept>

namespace ddp {

int local_sgd(Communicator& communicator, const Tensor& values, Optimizer& optimizer, int steps,
              int every, const std::function<void(int step)>& compute) {
    if (every < 1)
        throw std::invalid_argument("ranks cannot average every " + std::to_string(every) +
                                    " steps");
    Stream& stream = values.device().stream();
    int averages = 0;
    for (int step = 0; step < steps; step++) {
        // A step of this rank alone.
        compute(step);
        optimizer.step();
        optimizer.zero_gradients();
        if ((step + 1) % every != 0 && step + 1 != steps)
            continue;
        // The parameters are averaged, not the gradients: the ranks have drifted apart since.
        communicator.all_reduce(values.data(), values.data(), values.size(), ReduceOp::average,
                                stream, "parameters");
        communicator.synchronize(stream);
        averages++;
    }
    return averages;
}

}  // namespace ddp
