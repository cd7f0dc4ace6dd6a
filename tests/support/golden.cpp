#include "tests/support/golden.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace ddp::test {
namespace {

// Walks through the lines that are no comments, and knows how to complain about the present one.
class Lines {
  public:
    Lines(const std::string& text, const std::string& name) : text_(text), name_(name) {}

    // False at the end of the file.
    bool next() {
        std::string line;
        while (std::getline(text_, line)) {
            number_++;
            if (line.starts_with('#'))
                continue;
            words_.clear();
            std::istringstream stream(line);
            for (std::string word; stream >> word;)
                words_.push_back(word);
            return true;
        }
        return false;
    }

    const std::vector<std::string>& words() const { return words_; }

    [[noreturn]] void fail(const std::string& what) const {
        throw std::runtime_error(name_ + ", line " + std::to_string(number_) + ": " + what +
                                 "; make the golden files again with tests/golden/make_golden.py.");
    }

  private:
    std::istringstream text_;
    std::string name_;
    std::vector<std::string> words_;
    int number_ = 0;
};

template <typename T>
T parse(const std::string& word, const Lines& lines) {
    T value{};
    const char* end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, value);
    if (error != std::errc() || stop != end || !std::isfinite(static_cast<double>(value)))
        lines.fail("'" + word + "' is not a finite number of the kind expected here");
    return value;
}

// The present line holds `name dims...`; the values follow, one line for each row or picture.
GoldenTensor parse_tensor(Lines& lines) {
    constexpr std::size_t max_numbers =
        1 << 20;  // no golden file holds more; a broken one shall not eat memory
    GoldenTensor tensor;
    std::size_t count = 1;
    for (std::size_t i = 1; i < lines.words().size(); i++) {
        tensor.shape.push_back(parse<std::size_t>(lines.words()[i], lines));
        if (tensor.shape.back() == 0 || tensor.shape.back() > max_numbers / count)
            lines.fail("'" + lines.words()[i] + "' is no dimension of a small tensor");
        count *= tensor.shape.back();
    }
    const std::string name = lines.words()[0];
    if (tensor.shape.empty())
        lines.fail("'" + name + "' has neither dimensions nor a value");
    std::size_t in_line = tensor.shape.back();
    if (tensor.shape.size() == 4)
        in_line *= tensor.shape[2];
    for (std::size_t line = 0; line < count / in_line; line++) {
        if (!lines.next() || lines.words().size() != in_line)
            lines.fail("a line of '" + name + "' must have " + std::to_string(in_line) + " values");
        for (const std::string& word : lines.words())
            tensor.values.push_back(parse<float>(word, lines));
    }
    return tensor;
}

template <typename T>
const T& find(const std::map<std::string, T>& entries, const std::string& name) {
    const auto entry = entries.find(name);
    if (entry != entries.end())
        return entry->second;
    std::string known;
    for (const auto& [other, value] : entries)
        known += " " + other;
    throw std::out_of_range("The golden file has no '" + name + "' but:" + known + ".");
}

// [1][2] for element 7 of a 2 x 5 tensor.
std::string index_text(std::size_t element, const std::vector<std::size_t>& shape) {
    std::string text;
    for (std::size_t dimension = shape.size(); dimension > 0; dimension--) {
        const std::string index = std::to_string(element % shape[dimension - 1]);
        text = std::string("[").append(index).append("]").append(text);
        element /= shape[dimension - 1];
    }
    return text;
}

std::uint32_t mix(std::uint32_t h) {
    h ^= h >> 16;
    h *= 0x85ebca6b;
    h ^= h >> 13;
    h *= 0xc2b2ae35;
    return h ^ h >> 16;
}

std::uint32_t hash(std::uint32_t stream, std::uint32_t index) {
    return mix(mix(stream) + index);
}

}  // namespace

const GoldenTensor& Golden::tensor(const std::string& name) const {
    return find(tensors_, name);
}

double Golden::number(const std::string& name) const {
    return find(numbers_, name);
}

Golden read_golden(const std::string& file) {
    const std::string path = DDP_GOLDEN_DIR "/" + file;
    std::ifstream stream(path);
    if (!stream)
        throw std::runtime_error("There is no golden file " + path +
                                 "; make it with tests/golden/make_golden.py.");
    std::ostringstream text;
    text << stream.rdbuf();
    return parse_golden(text.str(), file);
}

std::vector<std::string> golden_files(const std::string& prefix) {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(DDP_GOLDEN_DIR)) {
        if (entry.path().filename().string().starts_with(prefix))
            files.push_back(entry.path().filename().string());
    }
    std::sort(files.begin(), files.end());
    return files;
}

Golden parse_golden(const std::string& text, const std::string& name) {
    Golden golden;
    Lines lines(text, name);
    if (!lines.next() || lines.words().size() < 3 || lines.words()[0] != "golden" ||
        lines.words()[1] != "2")
        lines.fail("the file does not start with 'golden 2' and its maker");
    golden.made_by_ = lines.words()[2];
    for (std::size_t i = 3; i < lines.words().size(); i++)
        golden.made_by_ += " " + lines.words()[i];
    while (lines.next()) {
        const std::string key = lines.words().empty() ? "" : lines.words()[0];
        if (key.empty() || !std::isalpha(static_cast<unsigned char>(key[0])))
            lines.fail("'" + key +
                       "' is no name (does the tensor above have more values than it says?)");
        if (golden.numbers_.contains(key) || golden.tensors_.contains(key))
            lines.fail("'" + key + "' comes twice");
        if (lines.words().size() == 3 && lines.words()[1] == "=")
            golden.numbers_[key] = parse<double>(lines.words()[2], lines);
        else
            golden.tensors_[key] = parse_tensor(lines);
    }
    return golden;
}

std::string worst_difference(std::span<const float> actual, const GoldenTensor& expected,
                             double relative, double absolute) {
    if (actual.size() != expected.values.size())
        return std::to_string(actual.size()) + " values instead of " +
               std::to_string(expected.values.size());
    std::size_t wrong = 0;
    std::size_t worst = 0;
    double worst_excess = 0;
    for (std::size_t i = 0; i < actual.size(); i++) {
        const double allowed = absolute + relative * std::abs(double{expected.values[i]});
        const double difference = std::abs(double{actual[i]} - expected.values[i]);
        if (difference <= allowed)
            continue;
        const double excess = std::isnan(difference) ? INFINITY : difference - allowed;
        if (wrong == 0 || excess > worst_excess) {
            worst = i;
            worst_excess = excess;
        }
        wrong++;
    }
    if (wrong == 0)
        return "";
    std::ostringstream text;
    text.precision(9);
    text << wrong << " of " << actual.size() << " values differ, most at "
         << index_text(worst, expected.shape) << ": " << actual[worst] << " instead of "
         << expected.values[worst];
    return text.str();
}

float golden_unit(std::uint32_t stream, std::uint32_t index) {
    return static_cast<float>(hash(stream, index) >> 8) * 0x1p-24f;
}

int golden_label(std::uint32_t sample) {
    return static_cast<int>(hash(1, sample) % 10);
}

std::vector<float> golden_image(std::uint32_t sample, std::uint32_t pixels) {
    const auto label = static_cast<std::uint32_t>(golden_label(sample));
    std::vector<float> image(pixels);
    for (std::uint32_t p = 0; p < pixels; p++) {
        const float picture = golden_unit(2, label * pixels + p) - 0.5f;
        const float noise = golden_unit(3, sample * pixels + p) - 0.5f;
        image[p] = (picture + noise) / 2;
    }
    return image;
}

std::vector<float> golden_weights(std::uint32_t position, std::size_t count, std::size_t fan_in) {
    const auto bound = static_cast<float>(1 / std::sqrt(static_cast<double>(fan_in)));
    std::vector<float> weights(count);
    for (std::size_t i = 0; i < count; i++)
        weights[i] = bound * (2 * golden_unit(10 + position, static_cast<std::uint32_t>(i)) - 1);
    return weights;
}

}  // namespace ddp::test
