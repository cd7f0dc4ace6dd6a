#include "common/data/fashion_mnist.hpp"

#include <algorithm>

#include "tests/common/data/files.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

constexpr std::size_t picture = 28 * 28;

Bytes labels_of(std::size_t count) {
    Bytes labels(count);
    for (std::size_t i = 0; i < count; i++)
        labels[i] = static_cast<std::uint8_t>(i % 10);
    return labels;
}

// A folder of four good files, 13 training and 4 test pictures, one of the files gzipped.
struct SmallSet {
    SmallSet() {
        folder.write("train-images-idx3-ubyte", idx_file({13, 28, 28}, counting(13 * picture)));
        folder.write("train-labels-idx1-ubyte.gz", gzipped(idx_file({13}, labels_of(13))));
        folder.write("t10k-images-idx3-ubyte", idx_file({4, 28, 28}, counting(4 * picture)));
        folder.write("t10k-labels-idx1-ubyte", idx_file({4}, {9, 8, 7, 6}));
    }
    std::string error() const {
        return data_error([&] { load_fashion_mnist(folder.path()); });
    }
    std::string path(const std::string& name) const {
        const std::string full = (folder.path() / name).string();
        return "'" + full + "'";
    }
    TemporaryFolder folder;
};

}  // namespace

TEST_CASE("the four files become training and test pictures with their labels") {
    const SmallSet set;
    const FashionMnist data = load_fashion_mnist(set.folder.path());
    CHECK(data.train.count() == 13);
    CHECK(data.train.pixels == counting(13 * picture));
    CHECK(data.train.labels == labels_of(13));
    CHECK(data.test.count() == 4);
    CHECK(data.test.pixels == counting(4 * picture));
    CHECK(data.test.labels == Bytes{9, 8, 7, 6});
    CHECK(data.test.image_size() == picture);
    CHECK(data.test.height == 28);
}

TEST_CASE("a missing data set names the package and the four files") {
    const TemporaryFolder folder;
    CHECK(data_error([&] { load_fashion_mnist(folder.path()); }) ==
          "Fashion-MNIST was not found: '" + folder.path().string() +
              "' has neither train-images-idx3-ubyte nor train-images-idx3-ubyte.gz: install the "
              "Debian package dataset-fashion-mnist, or give --data DIR with the four files "
              "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and "
              "t10k-labels-idx1-ubyte, each gzipped (.gz) or not.");
    CHECK(data_error([&] { load_fashion_mnist(folder.path() / "no such"); }).find("not found") !=
          std::string::npos);

    const SmallSet set;
    std::filesystem::remove(set.folder.path() / "t10k-labels-idx1-ubyte");
    CHECK(set.error().find("has neither t10k-labels-idx1-ubyte nor") != std::string::npos);
}

TEST_CASE("files that do not fit together are refused in a sentence") {
    const SmallSet set;
    SECTION("fewer labels than pictures") {
        set.folder.write("t10k-labels-idx1-ubyte", idx_file({3}, {1, 2, 3}));
        CHECK(set.error() == set.path("t10k-labels-idx1-ubyte") +
                                 " has 3 labels for the 4 pictures of " +
                                 set.path("t10k-images-idx3-ubyte") + ": fetch both files again.");
    }
    SECTION("a label above 9") {
        set.folder.write("t10k-labels-idx1-ubyte", idx_file({4}, {1, 9, 10, 3}));
        CHECK(set.error() ==
              set.path("t10k-labels-idx1-ubyte") +
                  " gives picture 2 the label 10, but labels go from 0 to 9: the file "
                  "is damaged, fetch it again.");
    }
    SECTION("pictures of another size, none, or labels in their place") {
        for (const auto& [dims, elements] :
             {std::pair{std::vector<std::uint32_t>{4, 28, 27}, 4 * 28 * 27},
              {std::vector<std::uint32_t>{4, 784}, 4 * 784},
              {std::vector<std::uint32_t>{0, 28, 28}, 0},
              {std::vector<std::uint32_t>{4}, 4}}) {
            set.folder.write("t10k-images-idx3-ubyte", idx_file(dims, counting(elements)));
            CHECK(set.error() ==
                  set.path("t10k-images-idx3-ubyte") +
                      " does not hold pictures of 28 x 28 pixels: give the folder of "
                      "the four Fashion-MNIST files.");
        }
    }
    SECTION("pictures in place of labels") {
        set.folder.write("t10k-labels-idx1-ubyte", idx_file({4, 1}, {1, 2, 3, 4}));
        CHECK(set.error() == set.path("t10k-labels-idx1-ubyte") +
                                 " has 2 dimensions, but labels have one: give the folder of the "
                                 "four Fashion-MNIST files.");
    }
    SECTION("a truncated file") {
        set.folder.write("t10k-labels-idx1-ubyte", shortened(idx_file({4}, {1, 2, 3, 4}), 11));
        CHECK(
            set.error().starts_with(set.path("t10k-labels-idx1-ubyte") + " announces 4 = 4 bytes"));
    }
}

TEST_CASE("a file of the official length that is not the official file is refused") {
    const SmallSet set;
    set.folder.write("t10k-images-idx3-ubyte", idx_file({10000, 28, 28}, Bytes(10000 * picture)));
    set.folder.write("t10k-labels-idx1-ubyte", idx_file({10000}, labels_of(10000)));
    const std::string error = set.error();
    CHECK(error.starts_with(set.path("t10k-images-idx3-ubyte") +
                            " has the length of Fashion-MNIST's file, but the checksum "));
    CHECK(error.ends_with(
        " instead of 12728439: it is damaged or another data set, fetch it again."));
}

TEST_CASE("the plain file is taken where both are there") {
    const SmallSet set;
    set.folder.write("t10k-labels-idx1-ubyte.gz", gzipped(idx_file({4}, {0, 0, 0, 0})));
    CHECK(load_fashion_mnist(set.folder.path()).test.labels == Bytes{9, 8, 7, 6});
}

}  // namespace ddp::test
