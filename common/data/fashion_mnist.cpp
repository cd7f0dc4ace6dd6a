#include "common/data/fashion_mnist.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "common/data/file.hpp"
#include "common/data/idx.hpp"
#include "common/data/labelled_rows.hpp"

namespace ddp {
namespace {

constexpr std::size_t picture = 28 * 28;

struct Part {
    const char* file;
    std::size_t official_bytes;       // the elements after the IDX header
    std::uint32_t official_checksum;  // their CRC-32
};
constexpr Part train_images{"train-images-idx3-ubyte", 60000 * picture, 0xae65dccd};
constexpr Part train_labels{"train-labels-idx1-ubyte", 60000, 0x2ed6e46a};
constexpr Part test_images{"t10k-images-idx3-ubyte", 10000 * picture, 0x12728439};
constexpr Part test_labels{"t10k-labels-idx1-ubyte", 10000, 0x242bc73f};

// Returns the path of the file in `folder`, plain or gzipped. Throws DataError if it has neither.
std::filesystem::path find(const std::filesystem::path& folder, const Part& part) {
    const std::filesystem::path plain = folder / part.file;
    const std::filesystem::path gzipped = folder / (std::string(part.file) + ".gz");
    std::error_code unreadable;  // a folder that cannot be read counts as one without the file
    if (std::filesystem::exists(plain, unreadable))
        return plain;
    if (std::filesystem::exists(gzipped, unreadable))
        return gzipped;
    throw DataError(
        "Fashion-MNIST was not found: '" + folder.string() + "' has neither " + part.file +
        " nor " + part.file +
        ".gz: install the Debian package dataset-fashion-mnist, or give --data DIR with "
        "the four files " +
        train_images.file + ", " + train_labels.file + ", " + test_images.file + " and " +
        test_labels.file + ", each gzipped (.gz) or not.");
}

std::string hex_of_checksum(std::uint32_t number) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08x", static_cast<unsigned>(number));
    return digits;
}

// Throws DataError if a file of the official length is not the official file.
void check_official(const Idx& idx, const Part& part, const std::filesystem::path& path) {
    if (idx.bytes.size() != part.official_bytes)
        return;
    const std::uint32_t found = checksum(idx.bytes);
    if (found != part.official_checksum)
        refuse(path.string(), "has the length of Fashion-MNIST's file, but the checksum " +
                                  hex_of_checksum(found) + " instead of " +
                                  hex_of_checksum(part.official_checksum) +
                                  ": it is damaged or another data set, fetch it again.");
}

// Reads one half of the data set, training or test. Throws DataError as load_fashion_mnist does.
LabelledImages load_half(const std::filesystem::path& folder, const Part& images_part,
                         const Part& labels_part) {
    const std::filesystem::path images_path = find(folder, images_part);
    const std::filesystem::path labels_path = find(folder, labels_part);
    Idx images = read_idx(images_path);
    Idx labels = read_idx(labels_path);

    if (images.dims.size() != 3 || std::ranges::count(images.dims, 0u) > 0)
        refuse(images_path.string(),
               "does not hold pictures (a number of them, their height, their width): give the "
               "folder of four files like those of Fashion-MNIST.");
    if (labels.dims.size() != 1)
        refuse(labels_path.string(),
               "has " + std::to_string(labels.dims.size()) +
                   " dimensions, but labels have one: give the folder of the four "
                   "Fashion-MNIST files.");
    if (labels.dims[0] != images.dims[0])
        refuse(labels_path.string(), "has " + std::to_string(labels.dims[0]) + " labels for the " +
                                         std::to_string(images.dims[0]) + " pictures of '" +
                                         images_path.string() + "': fetch both files again.");
    check_official(images, images_part, images_path);
    check_official(labels, labels_part, labels_path);
    const int classes = std::ranges::max(labels.bytes) + 1;
    return {
        1,       images.dims[1], images.dims[2], std::move(images.bytes), std::move(labels.bytes),
        classes, false};
}

}  // namespace

FashionMnist load_fashion_mnist(const std::filesystem::path& folder) {
    FashionMnist data{load_half(folder, train_images, train_labels),
                      load_half(folder, test_images, test_labels)};
    const auto size = [](const LabelledImages& images) {
        return std::to_string(images.height) + " x " + std::to_string(images.width);
    };
    if (size(data.train) != size(data.test))
        refuse(folder.string(), "has training pictures of " + size(data.train) +
                                    " pixels, and test pictures of " + size(data.test) +
                                    ": make both of one size.");
    data.train.classes = data.test.classes = std::max(data.train.classes, data.test.classes);
    return data;
}

// ---- A table

FashionMnist load_table(const std::filesystem::path& file) {
    constexpr int max_classes = 256, in_five = 5;
    const LabelledRows all = read_labelled_rows(file);
    if (all.count() < in_five)
        refuse(file.string(), "has " + std::to_string(all.count()) +
                                  " rows; every fifth is a test, so it needs five at least.");
    if (all.classes > max_classes)
        refuse(file.string(), "has the label " + std::to_string(all.classes - 1) +
                                  ", but a chapter's network has at most 256 classes, 0 to 255.");
    LabelledRows train{all.columns, all.classes, {}, {}}, test = train;
    for (int row = 0; row < all.count(); row++) {
        LabelledRows& half = row % in_five == in_five - 1 ? test : train;
        const auto begin = all.values.begin() + std::ptrdiff_t{row} * all.columns;
        half.values.insert(half.values.end(), begin, begin + all.columns);
        half.labels.push_back(all.labels[static_cast<std::size_t>(row)]);
    }
    normalise_columns(train, &test);
    const auto samples_of = [](const LabelledRows& rows) {
        LabelledImages samples{.height = 1,
                               .width = static_cast<std::size_t>(rows.columns),
                               .pixels = {},
                               .labels = {rows.labels.begin(), rows.labels.end()},
                               .classes = rows.classes,
                               .are_numbers = true};
        samples.pixels.resize(rows.values.size() * sizeof(float));
        std::memcpy(samples.pixels.data(), rows.values.data(), samples.pixels.size());
        return samples;
    };
    return {samples_of(train), samples_of(test), all.about};
}

}  // namespace ddp
