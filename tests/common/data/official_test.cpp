// The real Fashion-MNIST, where Debian's package put it.
#include <algorithm>
#include <cmath>
#include <iostream>

#include "common/data/fashion_mnist.hpp"
#include "common/data/idx.hpp"
#include "tests/common/data/files.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

bool missing() {
    if (std::filesystem::exists(fashion_mnist_debian_folder))
        return false;
    std::cout
        << "SKIPPED: the package dataset-fashion-mnist is not installed\n";  // ctest looks for it
    return true;
}

// The mean and standard deviation of x / 255.
Normalisation statistics(const Bytes& pixels) {
    double sum = 0, squares = 0;
    for (const std::uint8_t pixel : pixels) {
        sum += pixel / 255.0;
        squares += pixel / 255.0 * (pixel / 255.0);
    }
    const double mean = sum / pixels.size();
    return {static_cast<float>(mean),
            static_cast<float>(std::sqrt(squares / pixels.size() - mean * mean))};
}

}  // namespace

TEST_CASE("the official files are read, balanced, and have the documented mean and deviation") {
    if (missing())
        return;
    const FashionMnist data = load_fashion_mnist();
    REQUIRE(data.train.count() == 60000);
    REQUIRE(data.test.count() == 10000);
    for (std::uint8_t label = 0; label < 10; label++) {
        CHECK(std::count(data.train.labels.begin(), data.train.labels.end(), label) == 6000);
        CHECK(std::count(data.test.labels.begin(), data.test.labels.end(), label) == 1000);
    }
    // The first three training pictures: an ankle boot and two T-shirts.
    CHECK(fashion_mnist_classes[data.train.labels[0]] == "ankle boot");
    CHECK(fashion_mnist_classes[data.train.labels[1]] == "T-shirt/top");
    CHECK(fashion_mnist_classes[data.train.labels[2]] == "T-shirt/top");
    const Normalisation found = statistics(data.train.pixels);
    CHECK(found.mean == Approx(fashion_mnist_normalisation.mean).margin(5e-5));
    CHECK(found.std == Approx(fashion_mnist_normalisation.std).margin(5e-5));
}

TEST_CASE("a flipped bit in an official file is seen, gzipped or not") {
    if (missing())
        return;
    const std::filesystem::path official = fashion_mnist_debian_folder;
    const TemporaryFolder folder;
    for (const char* name : {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
                             "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"})
        std::filesystem::create_symlink(official / name, folder.path() / name);
    const Idx labels = read_idx(official / "t10k-labels-idx1-ubyte.gz");
    const Bytes plain = idx_file({10000}, labels.bytes);
    const auto error = [&] { return data_error([&] { load_fashion_mnist(folder.path()); }); };
    folder.write("t10k-labels-idx1-ubyte", plain);
    CHECK(error() == "");

    folder.write("t10k-labels-idx1-ubyte", with_byte(plain, 8 + 1234, plain[8 + 1234] ^ 1));
    CHECK(error().find("instead of 242bc73f") != std::string::npos);

    const Bytes packed = read_file(official / "t10k-labels-idx1-ubyte.gz");
    for (std::size_t bit = 8 * 100 + 1; bit < 8 * packed.size(); bit += 8 * 100 + 1) {
        const std::string message = data_error(
            [&] { parse_idx(with_bit_flipped(packed, bit), "t10k-labels-idx1-ubyte.gz"); });
        INFO("bit " << bit << ": " << message);
        CHECK(message.ends_with("fetch it again."));
    }
}

}  // namespace ddp::test
