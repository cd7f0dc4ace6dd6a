#pragma once
// What comes of it if each rank sends its gradients as they become ready, and not in an order that
// all agree on.
#include "05_ranks/world.hpp"

namespace ddp {

enum class SendingOrder {
    ready,          // each gradient at once; calls carry no names
    ready_by_name,  // ... and each call says which gradient it is for
    agreed,         // DistributedDataParallel's
};

// One step of a network with two branches of equal size, of which odd ranks compute the second
// first, so that its gradients are ready later. How far the gradients are from the mean over the
// ranks, as a part of it. All ranks call it together. By name and out of order it throws
// RunFailed, or std::runtime_error on the rank that notices.
double error_of_step(Rank& rank, SendingOrder order);

// The three, one after the other; needs two ranks or more. Prints on rank 0.
void show_sending_orders(World& world);

}  // namespace ddp
