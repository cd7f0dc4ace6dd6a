#pragma once
// Shows the mistake of sending gradients in the order in which they become ready on each rank,
// instead of in an order on which all ranks agree.
#include "05_ranks/world.hpp"

namespace ddp {

enum class SendingOrder {
    ready,          // each gradient at once; calls carry no names
    ready_by_name,  // each gradient at once; calls carry the gradient's name
    agreed,         // the order of DistributedDataParallel's buckets
};

// Makes one step of a network with two branches of equal size; odd ranks compute the second branch
// first, so that its gradients are ready later. Returns the relative error of a's gradient against
// the mean over the ranks. All ranks call it together. With ready_by_name it throws RunFailed, or
// std::runtime_error on the rank that notices the difference.
double error_of_step(Rank& rank, SendingOrder order);

// Shows the three orders, one after the other; nothing with one rank. Prints on rank 0.
void show_sending_orders(World& world);

}  // namespace ddp
