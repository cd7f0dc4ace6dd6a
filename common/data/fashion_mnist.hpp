#pragma once
// Fashion-MNIST: 70,000 grey pictures of clothes, 28 x 28 pixels, in ten classes. It has the format
// of MNIST's digits and is harder to learn. (Xiao, Rasul, Vollgraf, 2017; MIT licence.)
#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "common/data/images.hpp"

namespace ddp {

struct FashionMnist {
    LabelledImages train;    // 60,000 pictures
    LabelledImages test;     // 10,000 pictures
    std::string about = {};  // of a table: its label and classes, in a line
};

inline constexpr std::array<std::string_view, 10> fashion_mnist_classes = {
    "T-shirt/top", "trouser", "pullover", "dress", "coat",
    "sandal",      "shirt",   "sneaker",  "bag",   "ankle boot"};

// The mean and standard deviation of x / 255 over all training pixels, 0.28604 and 0.35302, rounded
// to the four digits that PyTorch programs commonly use.
inline constexpr Normalisation fashion_mnist_normalisation{0.2860f, 0.3530f};

// The folder where Debian's package dataset-fashion-mnist installs the four files.
inline constexpr std::string_view fashion_mnist_debian_folder = "/usr/share/datasets/fashion-mnist";

// Reads a CSV file (labelled_rows.hpp) as a data set: every fifth row is a test, and the columns
// are normalised by the training rows. Throws DataError as read_labelled_rows does, and if there
// are fewer than five rows or more than 256 classes.
FashionMnist load_table(const std::filesystem::path& file);

// Reads {train,t10k}-images-idx3-ubyte and {train,t10k}-labels-idx1-ubyte from `folder`, each plain
// or gzipped (.gz). torchvision's FashionMNIST/raw is such a folder. So is one of your own, with
// pictures of another size and other classes, which are counted: the largest label and one.
//
// Throws DataError if a file is missing or damaged, if training and test pictures have different
// sizes, or if there are not as many labels as pictures. IDX has no checksum, so a flipped bit in a
// plain file would go unnoticed and be trained on. A file of the official length must therefore be
// the official file, to the bit.
FashionMnist load_fashion_mnist(
    const std::filesystem::path& folder = std::filesystem::path(fashion_mnist_debian_folder));

}  // namespace ddp
