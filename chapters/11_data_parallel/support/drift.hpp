#pragma once
// The distance between replicas.
#include "03_network/layer.hpp"
#include "09_all_reduce/communicator.hpp"

namespace ddp {

class Drift {
  public:
    // Allocates memory of the communicator for the largest parameter. `communicator`, `device` and
    // `model` must outlive this object.
    Drift(Communicator& communicator, Device& device, const Module& model);

    // Returns |w(rank) - w(rank 0)| / |w(rank 0)|, where w are all parameters as one vector: the
    // mean over all ranks but rank 0, and 0 if there is only one rank. All ranks call it together.
    // Waits for the device.
    double measure();

  private:
    Communicator& communicator_;
    Device& device_;
    const Parameters parameters_;
    ArenaBuffer<float> of_rank_0_;  // one parameter at a time
};

}  // namespace ddp
