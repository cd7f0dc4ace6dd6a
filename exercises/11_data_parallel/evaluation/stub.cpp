// The exercise evaluation: scores over the samples of all ranks. Read
// exercises/11_data_parallel/README.md first.
#include "exercises/11_data_parallel/evaluation.hpp"

namespace ddp {
namespace {

// Helpers of several tasks go here.

}  // namespace

Confusion confusion_of_all(Rank& rank, const Confusion& mine) {
    // rank.all_gather() of a string brings every rank's bytes to every rank.
    throw NotImplemented("confusion");
}

Scores scores_of(const Confusion& confusion) {
    // Row t has the samples of class t; correct predictions are on the diagonal.
    throw NotImplemented("scores");
}

Spread spread_of_all(Rank& rank, const Spread& mine) {
    // Begin with two ranks: what are the mean and the squares of both together?
    throw NotImplemented("spread");
}

}  // namespace ddp
