#pragma once
// The confusion matrix: which classes a model mistakes for which.
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
    // Returns the number of samples of class `actual`.
    int samples(int actual) const;

    // Two classes, and how often one of them was taken for the other.
    struct Pair {
        int a = 0, b = 0;  // a < b
        int mistakes = 0;
    };
    // Returns the two classes that are mistaken for each other most often; of several such pairs
    // the first.
    Pair max_confused() const;
};

// Counts the model's predictions, in evaluation mode, over all batches of the order that
// loader.start_epoch was given. All labels must be below `classes`, the number of the model's
// outputs.
Confusion confusion_of(Device& device, Sequential& model, Loader& loader, int classes);

}  // namespace ddp
