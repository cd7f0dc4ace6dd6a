#include "tests/chapters/support/pictures.hpp"

#include <cstdint>
#include <fstream>
#include <vector>

namespace ddp::test {
namespace {

void write_idx(const std::filesystem::path& path, const std::vector<std::uint32_t>& dims,
               const std::string& bytes) {
    std::string file{0, 0, 8, static_cast<char>(dims.size())};
    for (const std::uint32_t dim : dims)
        for (const int shift : {24, 16, 8, 0})
            file += static_cast<char>(dim >> shift);
    std::ofstream(path, std::ios::binary) << file << bytes;
}

void write_pictures(const TemporaryFolder& folder, const std::string& name, int count,
                    PictureKind kind) {
    std::string pixels, labels;
    for (int n = 0; n < count; n++) {
        const int label = n * 7 % kind.classes;
        labels += static_cast<char>(label);
        for (int p = 0; p < kind.height * kind.width; p++)
            pixels += static_cast<char>(p / kind.width == 2 * label ? 200 : (n * 31 + p * 17) % 64);
    }
    const auto samples = static_cast<std::uint32_t>(count);
    write_idx(
        folder / (name + "-images-idx3-ubyte"),
        {samples, static_cast<std::uint32_t>(kind.height), static_cast<std::uint32_t>(kind.width)},
        pixels);
    write_idx(folder / (name + "-labels-idx1-ubyte"), {samples}, labels);
}

}  // namespace

Pictures::Pictures(int train, int test, PictureKind kind) {
    write_pictures(folder_, "train", train, kind);
    write_pictures(folder_, "t10k", test, kind);
}

}  // namespace ddp::test
