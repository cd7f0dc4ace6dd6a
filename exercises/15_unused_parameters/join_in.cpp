// The exercise join_in: nobody leaves before all have ended. Read
// exercises/15_unused_parameters/README.md first.
#include "exercises/15_unused_parameters/join_in.hpp"

namespace ddp {

JoinResult train_joined(const RankData& data, const JoinTraining& training,
                        std::vector<double> parameters, const SumOverRanks& sum) {
    // Who has no batch left knows nothing of the others but what they add up together.
    throw NotImplemented("together");
}

}  // namespace ddp
