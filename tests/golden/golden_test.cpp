// The reader of the golden files, its comparison, and the formula that both sides must share.
#include "tests/support/golden.hpp"

#include <limits>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

using namespace ddp::test;

namespace {

const std::string header = "golden 2 PyTorch 9.8.7\n";

// The message with which reading fails; empty if it does not.
template <typename Function>
std::string message_of(const Function& function) {
    try {
        function();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

std::string refusal(const std::string& text) {
    return message_of([&] { parse_golden(text, "case.txt"); });
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

std::vector<float> linear(const Golden& golden) {
    const GoldenTensor& weight = golden.tensor("weight");
    const GoldenTensor& input = golden.tensor("input");
    const std::size_t outputs = weight.shape[0];
    const std::size_t inputs = weight.shape[1];
    std::vector<float> output;
    for (std::size_t item = 0; item < input.shape[0]; item++) {
        for (std::size_t o = 0; o < outputs; o++) {
            double sum = golden.tensor("bias").values[o];
            for (std::size_t i = 0; i < inputs; i++)
                sum += double{weight.values[o * inputs + i]} * input.values[item * inputs + i];
            output.push_back(static_cast<float>(sum));
        }
    }
    return output;
}

}  // namespace

TEST_CASE("golden: a file holds its maker, numbers and tensors") {
    const Golden golden = parse_golden(
        header + "# a comment\nlr = 1e-3\nm.weight 2 3\n1 -2.5 3\n4 5 6.00000048\nv 1\n7\n",
        "case.txt");
    REQUIRE(golden.made_by() == "PyTorch 9.8.7");
    REQUIRE(golden.number("lr") == 1e-3);
    REQUIRE(golden.tensor("m.weight").shape == std::vector<std::size_t>{2, 3});
    REQUIRE(golden.tensor("m.weight").values == std::vector<float>{1, -2.5f, 3, 4, 5, 6.00000048f});
    REQUIRE(golden.tensor("v").values == std::vector<float>{7});
    REQUIRE(message_of([&] { golden.tensor("weight"); }) ==
            "The golden file has no 'weight' but: m.weight v.");
    REQUIRE(message_of([&] { golden.number("v"); }) == "The golden file has no 'v' but: lr.");
}

TEST_CASE("golden: a broken file is refused with its name and line") {
    REQUIRE(refusal(header + "v 2\n1 2\n") == "");
    REQUIRE(contains(refusal(""), "case.txt, line 0: the file does not start with 'golden 2'"));
    REQUIRE(contains(refusal("golden 1 PyTorch 1.2.3\n"), "line 1: the file does not start"));
    REQUIRE(contains(refusal(header + "v 2\n1\n"), "line 3: a line of 'v' must have 2 values"));
    REQUIRE(contains(refusal(header + "v 2 2\n1 2\n"), "line 3: a line of 'v' must have 2 values"));
    REQUIRE(refusal(header + "v 1 2 2 3\n1 2 3 4 5 6\n6 5 4 3 2 1\n") == "");
    REQUIRE(contains(refusal(header + "v 1 1 2 2\n1 2\n3 4\n"),
                     "line 3: a line of 'v' must have 4 values"));
    REQUIRE(contains(refusal(header + "v 2\n1 2\n3 4\n"), "line 4: '3' is no name"));
    REQUIRE(contains(refusal(header + "v 2\n1 x2\n"), "line 3: 'x2' is not a finite number"));
    REQUIRE(contains(refusal(header + "v 2\n1 2x\n"), "line 3: '2x' is not a finite number"));
    REQUIRE(contains(refusal(header + "v 2\ninf 1\n"), "line 3: 'inf' is not a finite number"));
    REQUIRE(contains(refusal(header + "v 2\n1 nan\n"), "line 3: 'nan' is not a finite number"));
    REQUIRE(contains(refusal(header + "v -2\n"), "line 2: '-2' is not a finite number"));
    REQUIRE(contains(refusal(header + "v 0\n"), "line 2: '0' is no dimension"));
    REQUIRE(contains(refusal(header + "v 4096 4096\n"), "line 2: '4096' is no dimension"));
    REQUIRE(contains(refusal(header + "v\n1\n"), "line 2: 'v' has neither dimensions nor a value"));
    REQUIRE(contains(refusal(header + "v = one\n"), "line 2: 'one' is not a finite number"));
    REQUIRE(contains(refusal(header + "v = 1\nv 1\n2\n"), "line 3: 'v' comes twice"));
    REQUIRE(contains(refusal(header + "\nv = 1\n"), "line 2: '' is no name"));
    const std::string missing = message_of([] { read_golden("none.txt"); });
    REQUIRE(missing.starts_with("There is no golden file "));
    REQUIRE(contains(missing, "golden/data/none.txt; make it with tests/golden/make_golden.py."));
}

TEST_CASE("golden: the worst difference is named, with its index") {
    const GoldenTensor expected{{2, 3}, {1, 2, 3, 4, 5, -100}};
    const auto compare = [&](std::vector<float> actual) {
        return worst_difference(actual, expected, 0.01, 0.125);
    };
    REQUIRE(compare({1, 2, 3, 4, 5, -100}) == "");
    REQUIRE(compare({1.125f, 1.875f, 3, 4, 5, -101}) == "");
    REQUIRE(compare({1.25f, 2, 3, 4, 6, -100}) ==
            "2 of 6 values differ, most at [1][1]: 6 instead of 5");
    REQUIRE(compare({1, 2, 3, 4, 5, -102}) ==
            "1 of 6 values differ, most at [1][2]: -102 instead of -100");
    const float nan = std::numeric_limits<float>::quiet_NaN();
    REQUIRE(compare({1, 2, nan, 4, 500, -100}) ==
            "2 of 6 values differ, most at [0][2]: nan instead of 3");
    const float infinity = std::numeric_limits<float>::infinity();
    REQUIRE(compare({1, 2, 3, -infinity, 5, -100}) ==
            "1 of 6 values differ, most at [1][0]: -inf instead of 4");
    REQUIRE(compare({1, 2, 3}) == "3 values instead of 6");
}

TEST_CASE("golden: every committed file can be read") {
    const std::vector<std::string> files = golden_files("");
    REQUIRE(files.size() > 20);
    for (const std::string& file : files)
        REQUIRE(read_golden(file).made_by().starts_with("PyTorch "));
    REQUIRE(golden_files("conv2d_").size() == 8);
}

TEST_CASE("golden: PyTorch's Linear is the one that its file describes") {
    const Golden golden = read_golden("linear.txt");
    REQUIRE(golden.tensor("output").shape == std::vector<std::size_t>{9, 21});
    REQUIRE(worst_difference(linear(golden), golden.tensor("output"), 1e-6, 1e-6) == "");
}

TEST_CASE("golden: the formula gives the same bits here as there") {
    const Golden golden = read_golden("formula.txt");
    std::vector<float> units;
    for (std::uint32_t stream = 1; stream <= 3; stream++) {
        for (std::uint32_t index = 0; index < 8; index++)
            units.push_back(golden_unit(stream, index));
    }
    REQUIRE(worst_difference(units, golden.tensor("unit"), 0, 0) == "");

    std::vector<float> labels;
    for (std::uint32_t sample = 0; sample < 32; sample++)
        labels.push_back(static_cast<float>(golden_label(sample)));
    REQUIRE(worst_difference(labels, golden.tensor("label"), 0, 0) == "");

    std::vector<float> pixels;
    for (std::uint32_t sample = 0; sample < 4; sample++) {
        const std::vector<float> image = golden_image(sample, 195);
        pixels.insert(pixels.end(), image.begin(), image.end());
    }
    REQUIRE(worst_difference(pixels, golden.tensor("pixel"), 0, 0) == "");
    REQUIRE(worst_difference(golden_weights(0, 16, 37), golden.tensor("weight_fan_in_37"), 0, 0) ==
            "");
}
