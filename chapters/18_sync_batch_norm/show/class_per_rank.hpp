#pragma once
// A training in which each rank sees the pictures of its own class only, with BatchNorm or with
// SyncBatchNorm.
#include <memory>
#include <string>
#include <vector>

#include "03_network/optimizers.hpp"
#include "15_overlap/training.hpp"
#include "18_sync_batch_norm/sync_batch_norm.hpp"
#include "common/data/random.hpp"
#include "common/data/shapes.hpp"

namespace ddp {

// Returns the indices of this rank's pictures. The classes are dealt to the ranks in turn: with
// fewer than three ranks a rank has several classes; with more than three, ranks share a class and
// divide its pictures. Every rank has as many pictures as the rank with the fewest.
std::vector<int> own_pictures(const LabelledImages& images, int rank, int world_size);
// Returns the names of the rank's classes: "cats", "cats and cars", ...
std::string own_classes(int rank, int world_size);

struct ShapeSets {
    LabelledImages train, test;
};
// Draws `train` and `test` pictures.
ShapeSets make_shape_sets(int train, int test, std::uint64_t seed);

// Leaves the pictures as they are: to normalise them is the network's task here.
inline constexpr Normalisation as_they_are{};

// Returns two convolutions, each with a BatchNorm2d, ReLU and 4 x 4 pooling, and a linear layer:
// [batch, 1, 32, 32] to three classes.
std::unique_ptr<Sequential> make_shape_network(Device& device, Random& random);

// The pictures on their way to a rank's device. Both trainings take turns with them: each loader
// has a stream, and a GPU has few queues for the streams of all ranks.
struct ShapeLoaders {
    // `device` and `data` must outlive the run. `batch` is the number of pictures per step.
    ShapeLoaders(Rank& rank, Device& device, const ShapeSets& data, int batch);

    Loader &train, &test;
};

// One rank's part of a training. All ranks make the same calls.
class BatchNormRun {
  public:
    // `device`, `data` and `loaders` must outlive this object.
    BatchNormRun(Rank& rank, Device& device, const ShapeSets& data, ShapeLoaders& loaders,
                 bool is_synchronised, std::uint64_t seed);

    struct Epoch {
        int steps = 0;
        double seconds = 0;  // mean time of a step
        double train_accuracy = 0, test_accuracy = 0;
    };
    // Trains for one epoch on each rank's own pictures, then tests on the pictures of all classes.
    Epoch epoch(int number);

    // Returns the traffic of all its SyncBatchNorms, in all steps so far.
    Traffic traffic() const;
    int steps() const { return trainer_.steps(); }

  private:
    Rank& rank_;
    const std::uint64_t seed_;
    const std::vector<int> own_;
    ShapeLoaders& loaders_;
    const std::unique_ptr<Sequential> model_;
    const std::unique_ptr<Communicator> communicator_;
    const std::vector<SyncBatchNorm*> converted_;
    DistributedDataParallel ddp_;
    Sgd optimizer_;
    DdpTrainer trainer_;
};

// Prints, on rank 0, the mean and the variance of the pictures' brightness that a layer normalises
// with: on each rank with BatchNorm and with SyncBatchNorm, and on one rank with all pictures. All
// ranks call it together.
void show_statistics(Rank& rank, Device& device, const LabelledImages& images, int batch);

}  // namespace ddp
