#include "common/data/fashion_mnist.hpp"

#include <algorithm>
#include <cstring>

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
    SECTION("no pictures, or labels in their place") {
        for (const auto& [dims, elements] : {std::pair{std::vector<std::uint32_t>{4, 784}, 4 * 784},
                                             {std::vector<std::uint32_t>{0, 28, 28}, 0},
                                             {std::vector<std::uint32_t>{4, 0, 28}, 0},
                                             {std::vector<std::uint32_t>{4}, 4}}) {
            set.folder.write("t10k-images-idx3-ubyte", idx_file(dims, counting(elements)));
            CHECK(set.error() ==
                  set.path("t10k-images-idx3-ubyte") +
                      " does not hold pictures (a number of them, their height, their width): "
                      "give the folder of four files like those of Fashion-MNIST.");
        }
    }
    SECTION("training and test pictures of two sizes") {
        set.folder.write("t10k-images-idx3-ubyte", idx_file({4, 28, 27}, counting(4 * 28 * 27)));
        CHECK(set.error() == "'" + set.folder.path().string() +
                                 "' has training pictures of 28 x 28 pixels, and test pictures of "
                                 "28 x 27: make both of one size.");
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

TEST_CASE("pictures of another size, with other classes") {
    const SmallSet set;
    set.folder.write("train-images-idx3-ubyte", idx_file({13, 5, 9}, counting(13 * 45)));
    set.folder.write("t10k-images-idx3-ubyte", idx_file({4, 5, 9}, counting(4 * 45)));
    set.folder.write("t10k-labels-idx1-ubyte", idx_file({4}, {0, 255, 3, 4}));
    const FashionMnist data = load_fashion_mnist(set.folder.path());
    CHECK(data.train.height == 5);
    CHECK(data.train.width == 9);
    CHECK(data.train.classes == 256);  // of both halves
    CHECK(data.test.classes == 256);
    CHECK(data.test.image(3)[44] == counting(4 * 45).back());
}

TEST_CASE("a table: every fifth row is a test, and is normalised as the training rows are") {
    const TemporaryFolder folder;
    const auto load = [&](const std::string& text) {
        folder.write("own.csv", Bytes(text.begin(), text.end()));
        return load_table(folder.path() / "own.csv");
    };
    const FashionMnist data = load("a,b,label\n0,7,0\n2,7,1\n0,7,3\n2,7,0\n11,7,1\n");
    CHECK(data.train.count() == 4);
    CHECK(data.train.classes == 4);
    CHECK(data.train.image_size() == 2);
    CHECK(data.train.labels == Bytes{0, 1, 3, 0});
    CHECK(data.test.labels == Bytes{1});
    const auto floats = [](const LabelledImages& rows) {
        std::vector<float> all(rows.pixels.size() / sizeof(float));
        std::memcpy(all.data(), rows.pixels.data(), rows.pixels.size());
        return all;
    };
    CHECK(floats(data.train) == std::vector<float>{-1, 0, 1, 0, -1, 0, 1, 0});
    CHECK(floats(data.test) == std::vector<float>{10, 0});  // (11 - 1) / 1: not by its own mean
    CHECK(data_error([&] {
              load("1,0\n2,0\n3,1\n4,1\n");
          }).ends_with("' has 4 rows; every fifth is a test, so it needs five at least."));
    CHECK(data_error([&] { load("1,0\n2,0\n3,1\n4,1\n5,256\n"); })
              .ends_with("' has the label 256, but a chapter's network has at most 256 classes, 0 "
                         "to 255."));
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
