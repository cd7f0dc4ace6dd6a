#include "common/data/labelled_rows.hpp"

#include <cmath>
#include <fstream>

#include "tests/common/data/files.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

LabelledRows read(const std::string& text) {
    TemporaryFolder folder;
    folder.write("rows.csv", Bytes(text.begin(), text.end()));
    return read_labelled_rows(folder.path() / "rows.csv");
}

// Returns what is said of a file with this text, without its name.
std::string refusal_of_rows(const std::string& text) {
    const std::string error = data_error([&] { read(text); });
    return error.substr(error.find("rows.csv' ") + 10);
}

}  // namespace

TEST_CASE("a CSV file becomes rows of numbers, and the last column labels") {
    const LabelledRows rows = read("height, width,label\n0.5,-2,1\r\n\n1e-3, 7 ,0\n3,4,4");
    REQUIRE(rows.columns == 2);
    REQUIRE(rows.classes == 5);
    REQUIRE(rows.count() == 3);
    REQUIRE(rows.values == std::vector<float>{0.5f, -2, 1e-3f, 7, 3, 4});
    REQUIRE(rows.labels == std::vector<int>{1, 0, 4});
    REQUIRE(read("1,0\n2,1\n").count() == 2);                       // the first line has no names
    REQUIRE(read("3,2,cat,dog\n1,2,0\n3,4,1\n").count() == 2);      // nor is scikit-learn's a row
    REQUIRE(read("\xEF\xBB\xBF-1.5,0\n2,1\n").values[0] == -1.5f);  // a byte order mark
}

TEST_CASE("the label is the column with its name, and that column and its classes are said") {
    const auto label = [](const std::string& names) {
        const std::string about = read(names + "\n0,2,7\n1,3,8\n0,4,5\n").about;
        return about.substr(about.find("rows.csv") + 8);
    };
    REQUIRE(label("label,red,blue") == ": the label is in column 1, 'label': 2 classes, 0 to 1\n");
    REQUIRE(label("red,\"Class\",blue") ==
            ": the label is in column 2, 'Class': 3 classes, 2 to 4\n");
    for (const std::string first : {"target", "y"})
        REQUIRE(label(first + ",red,blue").starts_with(": the label is in column 1,"));
    for (const std::string names : {"x,y,ring", "class,red,label", "1,2,6"})
        REQUIRE(label(names).starts_with(": the label is in column 3"));
    REQUIRE(refusal_of_rows("red,blue\n1,0\n2,0\n") ==
            "has one class only: every label, in column 2, 'blue', is 0: put the labels into the "
            "last column, or name theirs 'label'.");
}

TEST_CASE("a table that is none gets a sentence with its line") {
    const std::string row = "has a row that does not fit, line ";
    REQUIRE(refusal_of_rows("") ==
            "has no rows: it must be a table of numbers with commas between them.");
    REQUIRE(refusal_of_rows("a;b\n1;2\n") ==
            row + "2: it has one column: a row needs numbers and a label.");
    REQUIRE(refusal_of_rows("1,2,0\n3,1\n") ==
            row + "2: it has 2 columns, and those above have 3.");
    for (const std::string cell : {"x", "", "nan", "inf", "1.5.2", "0x10"})
        REQUIRE(refusal_of_rows("1,2,0\n1," + cell + ",0\n") ==
                row + "2: it has '" + cell +
                    "' in column 2: it must be a finite number, as 0.5 or -1e-3.");
    for (const std::string label : {"-1", "0.5", "cat", "10000", "nan"})
        REQUIRE(refusal_of_rows("1,2," + label + "\n") ==
                row + "1: it has the label '" + label +
                    "' in column 3: it must be a whole number from 0 to 9999.");
}

TEST_CASE("normalised columns have mean 0 and deviation 1, or are 0") {
    LabelledRows rows = read("1,5,0\n2,5,1\n3,5,0\n6,5,1\n");
    normalise_columns(rows);
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < 8; i += 2) {
        sum += rows.values[i];
        squares += rows.values[i] * rows.values[i];
        REQUIRE(rows.values[i + 1] == 0);
    }
    REQUIRE(std::abs(sum) < 1e-6);
    REQUIRE(std::abs(squares / 4 - 1) < 1e-6);
}

}  // namespace ddp::test
