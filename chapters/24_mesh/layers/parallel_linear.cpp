#include "24_mesh/layers/parallel_linear.hpp"

#include <stdexcept>

namespace ddp {
namespace {

int divided(int size, int parts, const std::string& name) {
    if (size % parts != 0)
        throw std::invalid_argument(name + " has " + std::to_string(size) +
                                    " rows or columns, which cannot be cut into " +
                                    std::to_string(parts) + " equal parts");
    return size / parts;
}

}  // namespace

MatrixParts::MatrixParts(const TensorParallel& parallel, const std::string& name, Device& device,
                         int inputs, int outputs, bool by_rows, Random& random) {
    // Every rank draws the whole matrix, so that it is the same in every mesh.
    const std::vector<float> whole =
        Linear(name, device, inputs, outputs, random, false).weight->value.to_host();
    const int rows = by_rows ? divided(outputs, parallel.parts(), name) : outputs;
    const int columns = by_rows ? inputs : divided(inputs, parallel.parts(), name);
    for (int p = parallel.first(); p < parallel.first() + parallel.here(); p++) {
        const int row = by_rows ? p * rows : 0, column = by_rows ? 0 : p * columns;
        std::vector<float> values;
        for (int r = row; r < row + rows; r++)
            values.insert(values.end(), whole.begin() + r * inputs + column,
                          whole.begin() + r * inputs + column + columns);
        Random unused(0);
        parts_.push_back(std::make_unique<Linear>(name + ".part" + std::to_string(p), device,
                                                  columns, rows, unused, false));
        parts_.back()->weight->value.copy_from(values);
    }
}

PartVariables MatrixParts::multiply(const PartVariables& x) const {
    PartVariables y;
    for (std::size_t p = 0; p < parts_.size(); p++)
        y.push_back(parts_[p]->forward(x[p]));
    return y;
}

void MatrixParts::append_to(Parameters& parameters) const {
    for (const auto& part : parts_)
        parameters.push_back(part->weight);
}

}  // namespace ddp
