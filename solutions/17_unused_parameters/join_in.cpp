// The exercise join_in: no rank leaves before all have ended. Read
// exercises/17_unused_parameters/README.md first.
#include "exercises/17_unused_parameters/join_in.hpp"

namespace ddp {

// stub
namespace {

// Makes one step of all ranks. Returns how many of them had a batch; 0 if this was no step.
double step_together(const RankData& data, int batch, const JoinTraining& training,
                     std::vector<double>& parameters, const SumOverRanks& sum) {
    const bool has_batch = batch < data.batches;
    std::vector<double> numbers(parameters.size(), 0);
    if (has_batch)
        numbers = data.gradient(batch, parameters);
    numbers.push_back(has_batch);
    sum(numbers);
    const double active = numbers.back();
    if (active == 0)
        return 0;
    const double divisor = training.divisor == Divisor::all_ranks ? training.ranks : active;
    for (std::size_t i = 0; i < parameters.size(); i++)
        parameters[i] -= training.learning_rate * numbers[i] / divisor;
    return active;
}

}  // namespace

// end stub
JoinResult train_joined(const RankData& data, const JoinTraining& training,
                        std::vector<double> parameters, const SumOverRanks& sum) {
    // stub: together
    //: A rank without a batch must learn from a sum whether the others go on.
    JoinResult result{parameters, {}};
    for (int step = 1;; step++) {
        if (step_together(data, step - 1, training, result.parameters, sum) == 0)
            return result;
        if (training.validate_every > 0 && step % training.validate_every == 0) {
            std::vector<double> loss{training.validation_loss(result.parameters)};
            sum(loss);
            result.validations.push_back(loss[0] / training.ranks);
        }
    }
    // end stub
}

}  // namespace ddp
