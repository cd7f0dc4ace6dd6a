#pragma once
// A training in which each rank sees the pictures of its own class only, with BatchNorm as it is
// and with SyncBatchNorm.
#include <memory>
#include <string>
#include <vector>

#include "03_network/optimizers.hpp"
#include "14_overlap/training.hpp"
#include "16_sync_batch_norm/sync_batch_norm.hpp"
#include "common/data/random.hpp"
#include "common/data/shapes.hpp"

namespace ddp {

// The classes are dealt to the ranks in turn. With fewer than three ranks a rank has several; with
// more than three, ranks share a class, and its pictures. Every rank has as many pictures as the
// one with the fewest.
std::vector<int> own_pictures(const LabelledImages& images, int rank, int world_size);
// "cats", "cats and cars", ...
std::string own_classes(int rank, int world_size);

struct ShapeSets {
    LabelledImages train, test;
};
ShapeSets make_shape_sets(int train, int test, std::uint64_t seed);

// Mean 0 and variance 1 are for the network to make.
inline constexpr Normalisation as_they_are{};

// Two convolutions, each with a BatchNorm2d, ReLU and 4 x 4 pooling, and a linear layer: [batch, 1,
// 32, 32] to three classes.
std::unique_ptr<Sequential> make_shape_network(Device& device, Random& random);

// The network on this rank, which learns together with those of the other ranks. All ranks make the
// same calls.
class BatchNormRun {
  public:
    // `device` and `data` must live longer.
    BatchNormRun(Rank& rank, Device& device, const ShapeSets& data, bool is_synchronised, int batch,
                 std::uint64_t seed);

    struct Epoch {
        int steps = 0;
        double seconds = 0;  // of a step
        double train_accuracy = 0, test_accuracy = 0;
    };
    // Learns from each rank's own pictures, and is tested on all.
    Epoch epoch(int number);

    // Of all its SyncBatchNorms, in all steps so far.
    Traffic traffic() const;
    int steps() const { return trainer_.steps(); }

  private:
    Rank& rank_;
    const std::uint64_t seed_;
    const std::vector<int> own_;
    Loader &train_, &test_;
    const std::unique_ptr<Sequential> model_;
    const std::unique_ptr<Communicator> communicator_;
    const std::vector<SyncBatchNorm*> converted_;
    DistributedDataParallel ddp_;
    Sgd optimizer_;
    DdpTrainer trainer_;
};

// A table: the mean and the variance of brightness that a normalisation of the pictures themselves
// takes on each rank, with BatchNorm, with SyncBatchNorm, and on one rank with all pictures. All
// ranks call it together; rank 0 prints.
void show_statistics(Rank& rank, Device& device, const LabelledImages& images, int batch);

}  // namespace ddp
