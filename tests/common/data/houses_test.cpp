#include "common/data/houses.hpp"

#include <algorithm>
#include <cmath>

#include "tests/common/data/files.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const std::string header = "bedrooms,bathrooms,price\n";

std::string refusal(const std::string& text) {
    return data_error([&] { parse_houses(text, "mine.csv"); });
}

bool equal(const House& a, const House& b) {
    return a.bedrooms == b.bedrooms && a.bathrooms == b.bathrooms && a.price == b.price;
}

}  // namespace

TEST_CASE("the first two houses are the book's, under every seed") {
    for (const std::uint64_t seed : {0u, 1u, 42u}) {
        const auto houses = make_houses(100, seed);
        REQUIRE(houses.size() == 100);
        CHECK(equal(houses[0], {6, 2, 15}));
        CHECK(equal(houses[1], {5, 2, 12}));
    }
}

TEST_CASE("the first n houses of a longer list are the same, from n = 0") {
    const auto all = make_houses(50, 9);
    for (const std::size_t count : {0, 1, 2, 3, 49}) {
        const auto some = make_houses(count, 9);
        REQUIRE(some.size() == count);
        for (std::size_t i = 0; i < count; i++)
            CHECK(equal(some[i], all[i]));
    }
    CHECK(make_houses(3, 9)[2].price != make_houses(3, 10)[2].price);
}

TEST_CASE("houses follow the documented law, with noise of 0.5") {
    const auto houses = make_houses(10002, 3);
    double sum = 0, squares = 0;
    for (std::size_t i = 2; i < houses.size(); i++) {
        const House& h = houses[i];
        REQUIRE((h.bedrooms >= 2 && h.bedrooms <= 8 && h.bathrooms >= 1 && h.bathrooms <= 3));
        const double noise = h.price - (3 * h.bedrooms + h.bathrooms - 5);
        sum += noise;
        squares += noise * noise;
    }
    CHECK(std::abs(sum / 10000) < 0.02);  // four standard errors
    CHECK(std::sqrt(squares / 10000) == Approx(0.5).epsilon(0.03));
}

TEST_CASE("houses are read from CSV, with the line ends of any system") {
    for (const std::string& text :
         {header + "6,2,15\n5,2.5,-1.25e1\n", header + "6,2,15\n5,2.5,-1.25e1",
          std::string("\xEF\xBB\xBF"
                      "bedrooms,bathrooms,price\r\n6,2,15\r\n5,2.5,-12.5\r\n")}) {
        const auto houses = parse_houses(text, "mine.csv");
        REQUIRE(houses.size() == 2);
        CHECK(equal(houses[0], {6, 2, 15}));
        CHECK(equal(houses[1], {5, 2.5, -12.5}));
    }
    const TemporaryFolder folder;
    const std::string text = header + "1,2,3\n";
    const auto path = folder.write("mine.csv", Bytes(text.begin(), text.end()));
    CHECK(equal(read_houses(path).at(0), {1, 2, 3}));
}

TEST_CASE("a bad CSV file gets one sentence that names line and column") {
    CHECK(refusal("") ==
          "'mine.csv', line 1: '' stands where the header is expected: begin the file with "
          "'bedrooms,bathrooms,price'.");
    CHECK(refusal(header) ==
          "'mine.csv', line 1: no house follows the header: add a line like '6,2,15'.");
    CHECK(refusal(header + "6,2,15\n5,two,12\n") ==
          "'mine.csv', line 3: column 2 (bathrooms) holds 'two', but a number is expected there: "
          "write it like 2 or 2.5, without spaces.");
    CHECK(refusal(header + "6,2\n") ==
          "'mine.csv', line 2: '6,2' should have 3 columns, not 2: write bedrooms, bathrooms "
          "and price, separated by commas.");
    CHECK(refusal(header + "6,2,15,\n").find("not 4:") != std::string::npos);
    CHECK(refusal(header + "6,2,15\n\n5,2,12\n").find("line 3: '' should have 3 columns, not 1:") !=
          std::string::npos);
}

TEST_CASE("only finite numbers written out in full are numbers") {
    for (const std::string bad : {"", " 6", "6 ", "+6", "0x6", "6.0.0", "6f", "nan", "inf", "-inf",
                                  "1e99", "\"6\"", "--6", "1e"}) {
        INFO(bad);
        CHECK(refusal(header + bad + ",2,15\n").find("column 1 (bedrooms)") != std::string::npos);
    }
    CHECK(refusal(header + "1,2," + std::string("3\0", 2) + "\n").find("holds '3?'") !=
          std::string::npos);
}

TEST_CASE("a message stays short and printable, whatever the file holds") {
    const std::string error = refusal(std::string(100000, '\x07'));
    CHECK(error.find("'??????????????????????????????...' stands where") != std::string::npos);
    CHECK(error.size() < 200);
}

}  // namespace ddp::test
