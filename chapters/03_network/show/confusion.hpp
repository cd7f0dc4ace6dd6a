#pragma once
// Which classes a model takes for which.
#include <vector>

#include "03_network/layers/sequential.hpp"
#include "03_network/loader.hpp"

namespace ddp {

struct Confusion {
    int classes = 0;
    std::vector<int> counts;  // [actual class, predicted class]

    int count(int actual, int predicted) const {
        return counts[static_cast<std::size_t>(actual * classes + predicted)];
    }
    // Samples of that class.
    int samples(int actual) const;

    // The two classes that are taken for each other most often, one way or the other; of several
    // the first.
    struct Pair {
        int a = 0, b = 0;  // a < b
        int mistakes = 0;
    };
    Pair most_confused() const;
};

// Of the model, in evaluation, on what loader.start_epoch was given. Labels are below `classes`, as
// many as the model has outputs.
Confusion confusion_of(Device& device, Sequential& model, Loader& loader, int classes);

}  // namespace ddp
