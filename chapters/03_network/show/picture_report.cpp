#include "03_network/show/picture_report.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "03_network/show/network_report.hpp"
#include "common/data/fashion_mnist.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr std::size_t pictures_asked = 500;
constexpr std::size_t mistakes_shown = 10;
constexpr std::size_t weights_shown = 24;  // outputs of the first layer

// The model's answer to one picture.
struct Answer {
    std::size_t picture, actual, predicted;
    double probability;  // of the predicted class, by softmax
};

// Returns the answer behind one picture's logits.
Answer answer_of(std::size_t picture, std::size_t actual, std::span<const float> logits) {
    const auto largest = std::ranges::max_element(logits);
    double sum = 0;
    for (const float logit : logits)
        sum += std::exp(double{logit} - *largest);
    return {picture, actual, static_cast<std::size_t>(largest - logits.begin()), 1 / sum};
}

// Returns the model's answers to the first pictures.
std::vector<Answer> ask(Device& device, Sequential& model, const LabelledImages& test) {
    const std::size_t count = std::min(pictures_asked, test.count());
    std::vector<float> inputs(count * test.image_size());
    normalise(std::span(test.pixels).first(inputs.size()), fashion_mnist_normalisation, inputs);
    const Shape shape{static_cast<int>(count), static_cast<int>(test.channels),
                      static_cast<int>(test.height), static_cast<int>(test.width)};
    Tape tape(device);
    model.set_training(false);
    const Variable outputs = model.forward(tape.constant(Tensor(device, shape, inputs)));
    const std::vector<float> logits = outputs.value().to_host();
    const std::size_t classes = logits.size() / count;
    std::vector<Answer> answers;
    for (std::size_t i = 0; i < count; i++)
        answers.push_back(
            answer_of(i, test.labels[i], std::span(logits).subspan(i * classes, classes)));
    return answers;
}

// Returns the answer to the first picture of each class, in the order of the classes.
std::vector<Answer> first_of_each_class(const std::vector<Answer>& answers, int classes) {
    std::vector<Answer> firsts;
    for (std::size_t number = 0; number < static_cast<std::size_t>(classes); number++) {
        const auto first = std::ranges::find(answers, number, &Answer::actual);
        if (first != answers.end())
            firsts.push_back(*first);
    }
    return firsts;
}

std::vector<Answer> first_mistakes(const std::vector<Answer>& answers) {
    std::vector<Answer> mistakes;
    for (const Answer& answer : answers)
        if (answer.predicted != answer.actual && mistakes.size() < mistakes_shown)
            mistakes.push_back(answer);
    return mistakes;
}

void print(const std::string& title, const std::vector<Answer>& answers, int classes) {
    Table table(title, {"test picture", "shows", "the network says", "with probability"});
    for (const Answer& answer : answers)
        table.row({std::to_string(answer.picture),
                   class_name(static_cast<int>(answer.actual), classes),
                   class_name(static_cast<int>(answer.predicted), classes),
                   format_percent(answer.probability)});
    std::cout << table << "\n";
}

// Returns bytes as text, two hexadecimal digits each.
std::string hexadecimal(std::span<const std::uint8_t> bytes) {
    constexpr const char* digits = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : bytes)
        text += {digits[byte / 16], digits[byte % 16]};
    return text;
}

void write_pictures(const std::filesystem::path& csv, const LabelledImages& test,
                    const std::vector<Answer>& firsts, const std::vector<Answer>& mistakes) {
    const int classes = test.classes;
    CsvWriter file(csv, {"row", "picture", "shows", "says", "probability", "width", "pixels"});
    for (const auto* row : {&firsts, &mistakes})
        for (const Answer& answer : *row)
            file.row({row == &firsts ? "first" : "mistake", answer.picture,
                      class_name(static_cast<int>(answer.actual), classes),
                      class_name(static_cast<int>(answer.predicted), classes), answer.probability,
                      test.width, hexadecimal(test.image(answer.picture))});
}

// Writes the outputs of the first layer with the longest weight vectors, as pictures: 128 is a
// weight of 0, and 1 and 255 are as far from it as the output's largest weight.
void write_weights(const std::filesystem::path& csv, const Tensor& weight, std::size_t width) {
    const std::vector<float> values = weight.to_host();
    const auto outputs = static_cast<std::size_t>(weight.dim(0));
    const std::size_t inputs = values.size() / outputs;
    const auto row = [&](std::size_t i) { return std::span(values).subspan(i * inputs, inputs); };
    std::vector<std::size_t> longest(outputs);
    std::iota(longest.begin(), longest.end(), std::size_t{0});
    std::ranges::stable_sort(longest, std::ranges::greater(), [&](std::size_t i) {
        return std::inner_product(row(i).begin(), row(i).end(), row(i).begin(), 0.0);
    });
    longest.resize(std::min(weights_shown, outputs));
    CsvWriter file(csv, {"output", "width", "largest", "weights"});
    for (const std::size_t i : longest) {
        float largest = 0;
        for (const float value : row(i))
            largest = std::max(largest, std::abs(value));
        std::vector<std::uint8_t> bytes;
        for (const float value : row(i))
            bytes.push_back(static_cast<std::uint8_t>(std::lround(128 + 127 * value / largest)));
        // A cnn's filters have 3 x 3 weights.
        file.row({i, inputs % width == 0 ? width : 3, largest, hexadecimal(bytes)});
    }
}

}  // namespace

void show_answers(Device& device, Sequential& model, const LabelledImages& test,
                  const std::filesystem::path& csv) {
    const std::vector<Answer> answers = ask(device, model, test);
    const std::vector<Answer> firsts = first_of_each_class(answers, test.classes);
    const std::vector<Answer> mistakes = first_mistakes(answers);
    print("The first test picture of each class", firsts, test.classes);
    if (!mistakes.empty())
        print("The first pictures that it gets wrong", mistakes, test.classes);
    write_pictures(beside(csv, "pictures"), test, firsts, mistakes);
    write_weights(beside(csv, "weights"), model.parameters().front()->value, test.width);
}

}  // namespace ddp
