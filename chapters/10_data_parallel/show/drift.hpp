#pragma once
// How far replicas have drifted apart.
#include "03_network/layer.hpp"
#include "09_all_reduce/communicator.hpp"

namespace ddp {

class Drift {
  public:
    // Takes memory of the communicator for the largest parameter. All three must live longer.
    Drift(Communicator& communicator, Device& device, const Module& model);

    // The length of the difference between this rank's parameters and rank 0's, as a part of the
    // length of rank 0's; the mean of that over the ranks but rank 0, and 0 for one rank. All ranks
    // call it together. Waits for the device.
    double measure();

  private:
    Communicator& communicator_;
    Device& device_;
    const Parameters parameters_;
    ArenaBuffer<float> of_rank_0_;  // one parameter
};

}  // namespace ddp
