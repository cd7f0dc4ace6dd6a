#include "12_async/local_sgd.hpp"

#include <stdexcept>

namespace ddp {

int local_sgd(Communicator& communicator, const Tensor& values, Optimizer& optimizer, int steps,
              int every, const std::function<void(int step)>& compute) {
    if (every < 1)
        throw std::invalid_argument("ranks cannot meet every " + std::to_string(every) + " steps");
    Stream& stream = values.device().stream();
    int met = 0;
    for (int step = 0; step < steps; step++) {
        compute(step);
        optimizer.step();
        optimizer.zero_gradients();
        if ((step + 1) % every != 0 && step + 1 != steps)
            continue;
        communicator.all_reduce(values.data(), values.data(), values.size(), ReduceOp::average,
                                stream, "parameters");
        communicator.synchronize(stream);
        met++;
    }
    return met;
}

}  // namespace ddp
