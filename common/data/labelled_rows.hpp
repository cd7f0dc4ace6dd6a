#pragma once
// Rows of numbers, each with a class: a data set of your own, from a CSV file.
#include <filesystem>
#include <string>
#include <vector>

namespace ddp {

struct LabelledRows {
    int columns = 0;            // numbers in a row, without the label
    int classes = 0;            // labels are 0 .. classes-1
    std::vector<float> values;  // row by row
    std::vector<int> labels;
    std::string about = {};  // "own.csv: the label is in column 5, 'ripe': 3 classes, 0 to 2\n"

    int count() const { return static_cast<int>(labels.size()); }
};

// Reads a table: one column is the label, a whole number from 0, and all others are numbers.
//
//     height,width,label      the first line may name the columns
//     0.13,-2.5,1
//     1e-3,0.7,0
//
// The label is the column that is named label, class or target (or y, if it is the first), and
// otherwise the last. Throws DataError, which names the line, if the file is anything else, and if
// all labels are the same.
LabelledRows read_labelled_rows(const std::filesystem::path& file);

// Shifts and scales every column to mean 0 and standard deviation 1, which training needs where
// columns have different units. A column that is constant becomes 0. `also`, rows to test with, are
// shifted and scaled by the same numbers.
void normalise_columns(LabelledRows& rows, LabelledRows* also = nullptr);

}  // namespace ddp
