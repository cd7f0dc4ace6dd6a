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
    REQUIRE(read("1,0\n").count() == 1);  // the first line has no names
}

TEST_CASE("a table that is none gets a sentence with its line") {
    const std::string row = "has a row that does not fit, line ";
    REQUIRE(refusal_of_rows("") ==
            "has no rows: it must be a table of numbers with commas between them.");
    REQUIRE(refusal_of_rows("a,b,label\n") ==
            "has no rows: it must be a table of numbers with commas between them.");
    REQUIRE(refusal_of_rows("a;b\n1;2\n") ==
            row + "2: it has one column: a row needs numbers, and its label in the last column.");
    REQUIRE(refusal_of_rows("1,2,0\n3,1\n") ==
            row + "2: it has 2 columns, and those above have 3.");
    for (const std::string cell : {"x", "", "nan", "inf", "1.5.2", "0x10"})
        REQUIRE(refusal_of_rows("1,2,0\n1," + cell + ",0\n") ==
                row + "2: it has '" + cell +
                    "' in column 2: it must be a finite number, as 0.5 or -1e-3.");
    for (const std::string label : {"-1", "0.5", "cat", "10000", "nan"})
        REQUIRE(refusal_of_rows("1,2," + label + "\n") ==
                row + "1: it has the label '" + label +
                    "' in its last column: it must be a whole number from 0 to 9999.");
    REQUIRE(!data_error([] { read_labelled_rows("/nowhere/rows.csv"); }).empty());
    REQUIRE(!data_error([] { read_labelled_rows("/tmp"); }).empty());
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
