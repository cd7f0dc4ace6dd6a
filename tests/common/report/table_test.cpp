#include "common/report/table.hpp"

#include <sstream>
#include <stdexcept>

#include "tests/common/report/thrown.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

std::size_t widest_line(const std::string& text) {
    std::istringstream lines(text);
    std::size_t widest = 0;
    for (std::string line; std::getline(lines, line);)
        widest = std::max(widest, display_width(line));
    return widest;
}

}  // namespace

TEST_CASE("a table, letter by letter", "[report][table]") {
    Table table("The 5 MB file for 7 friends", {"method", "predicted", "measured", "note"});
    table.row({"one by one", "35.0 s", "35.1 s", "slow"});
    table.row({"città", "15 s", "n/a", ""});
    table.note("The link is simulated.");
    table.note("1 MB/s.");
    std::ostringstream stream;
    stream << table;
    CHECK(stream.str() ==
          "The 5 MB file for 7 friends\n"
          "─────────────────────────────────────\n"
          "method      predicted  measured  note\n"
          "─────────────────────────────────────\n"
          "one by one     35.0 s    35.1 s  slow\n"
          "città            15 s       n/a\n"
          "─────────────────────────────────────\n"
          "The link is simulated.\n"
          "1 MB/s.\n");
}

TEST_CASE("only columns of numbers stand at the right", "[report][table]") {
    Table table("t", {"a long header", "another one", "a third one", "hash"});
    table.row({"-1", "+2 ms", "n/a", "1774812bd7b0a29d"});
    table.row({"3", "x", "-", "27e83b110afe5390"});
    CHECK(table.text() ==
          "t\n"
          "─────────────────────────────────────────────────────────\n"
          "a long header  another one  a third one  hash\n"
          "─────────────────────────────────────────────────────────\n"
          "           -1  +2 ms        n/a          1774812bd7b0a29d\n"
          "            3  x            -            27e83b110afe5390\n"
          "─────────────────────────────────────────────────────────\n");
}

TEST_CASE("a table without rows is its header", "[report][table]") {
    CHECK(Table("t", {"ab"}).text() == "t\n──\nab\n──\n──\n");
}

TEST_CASE("what is too wide is cut in its text, never in its numbers", "[report][table]") {
    Table table(std::string(60, 't') + " " + std::string(60, 'u'), {"parameter", "time", "what"});
    table.row({std::string(90, 'x'), "1234567890 us", std::string(30, 'y')});
    table.note(std::string(70, 'n') + " " + std::string(70, 'm'));
    const std::string text = table.text();
    CHECK(widest_line(text) == Table::max_width);
    CHECK(text.find("1234567890 us") != std::string::npos);
    CHECK(text.find(std::string(30, 'y')) != std::string::npos);
    CHECK(text.find(std::string(52, 'x') + "…") != std::string::npos);
    CHECK(text.find(std::string(60, 't') + "\n" + std::string(60, 'u') + "\n") == 0);
}

TEST_CASE("a table of numbers that cannot fit is refused", "[report][table]") {
    Table table("wide", {std::string(60, 'a'), std::string(60, 'b')});
    table.row({"1", "2"});
    CHECK(thrown<std::invalid_argument>([&] { (void)table.text(); }) ==
          "The table 'wide' needs 122 columns, more than the 100 of a page: leave out or shorten "
          "some.");
}

TEST_CASE("a row must have an entry per column", "[report][table]") {
    Table table("t", {"a", "b"});
    CHECK(thrown<std::invalid_argument>([&] { table.row({"1"}); }) ==
          "The table 't' has 2 columns, but a row has 1 entries: give one per column.");
    CHECK_THROWS_AS(Table("t", {}), std::invalid_argument);
}

TEST_CASE("text is counted and cut in characters, not bytes", "[report][table]") {
    CHECK(display_width("perché") == 6);
    CHECK(shortened("perché", 6) == "perché");
    CHECK(shortened("perché no", 7) == "perché…");
    CHECK(shortened("perché no", 6) == "perch…");
    CHECK(shortened("abc", 1) == "…");
    CHECK(shortened("abc", 0) == "");
}

}  // namespace ddp::test
