#pragma once
// The reference files that a real PyTorch made (tests/golden/make_golden.py describes their
// format), and the formula behind the data of its training curves.
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace ddp::test {

struct GoldenTensor {
    std::vector<std::size_t> shape;
    std::vector<float> values;  // in C order
};

// One file. A wrong name throws std::out_of_range with a sentence that lists the right ones.
class Golden {
  public:
    const GoldenTensor& tensor(const std::string& name) const;

    // A hyperparameter or a loss: a line `name = value`.
    double number(const std::string& name) const;

    // The program that made the file: "PyTorch 2.15.0", say.
    const std::string& made_by() const { return made_by_; }

  private:
    friend Golden parse_golden(const std::string& text, const std::string& name);
    std::string made_by_;
    std::map<std::string, double> numbers_;
    std::map<std::string, GoldenTensor> tensors_;
};

// Reads a file of tests/golden/data, "linear.txt" say. Throws std::runtime_error with one sentence
// that names the file, and the line if there is one.
Golden read_golden(const std::string& file);

// The same for a text in memory; `name` stands for the file in messages.
Golden parse_golden(const std::string& text, const std::string& name);

// The names of the files that start with `prefix` ("conv2d_": all convolutions), sorted.
std::vector<std::string> golden_files(const std::string& prefix);

// Empty if every value is within absolute + relative * |expected| of the expected one (a NaN never
// is). Otherwise a text that REQUIRE(... == "") shows: how many are not, and the worst one.
std::string worst_difference(std::span<const float> actual, const GoldenTensor& expected,
                             double relative, double absolute);

// ---- The formula, with the same bits as that of make_golden.py, which documents it

// In [0, 1), a multiple of 2^-24.
float golden_unit(std::uint32_t stream, std::uint32_t index);

// The class of a sample, 0 to 9.
int golden_label(std::uint32_t sample);

// The picture of a sample, `pixels` values in [-0.5, 0.5).
std::vector<float> golden_image(std::uint32_t sample, std::uint32_t pixels);

// The initial values of parameter `position` (from 0, in the model's order: BatchNorm's two count,
// though they start at 1 and 0): `count` values within +-1/sqrt(fan_in). A bias takes the fan_in of
// its weight.
std::vector<float> golden_weights(std::uint32_t position, std::size_t count, std::size_t fan_in);

}  // namespace ddp::test
