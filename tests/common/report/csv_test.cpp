#include "common/report/csv.hpp"

#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <random>
#include <stdexcept>

#include "tests/common/report/temporary_folder.hpp"
#include "tests/common/report/thrown.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {

TEST_CASE("cells are quoted where they must be, and numbers keep their digits", "[report][csv]") {
    const TemporaryFolder folder;
    const auto path = folder / "run.csv";
    {
        CsvWriter csv(path, {"name", "bytes", "seconds"});
        csv.row({"plain", 65536, 0.1});
        csv.row({"a,b", std::size_t{1} << 40, 1e-9});
        csv.row({"say \"hi\"", -3, 0.30000000000000004});
        csv.row({"two\nlines", 0, 2.0});
        csv.row({"", 1, std::nan("")});
    }
    CHECK(contents(path) ==
          "name,bytes,seconds\n"
          "plain,65536,0.1\n"
          "\"a,b\",1099511627776,1e-09\n"
          "\"say \"\"hi\"\"\",-3,0.30000000000000004\n"
          "\"two\nlines\",0,2\n"
          ",1,nan\n");
    const Csv back = read_csv(path);
    REQUIRE(back.rows.size() == 5);
    CHECK(back.text(1, "name") == "a,b");
    CHECK(back.text(2, "name") == "say \"hi\"");
    CHECK(back.text(3, "name") == "two\nlines");
    CHECK(back.text(4, "name") == "");
    CHECK(back.number(1, "bytes") == 0x1p40);
    CHECK(back.number(2, "seconds") == 0.30000000000000004);
}

TEST_CASE("whole lines are in the file before it is closed", "[report][csv]") {
    const TemporaryFolder folder;
    CsvWriter csv(folder / "run.csv", {"step"});
    CHECK(contents(folder / "run.csv") == "step\n");
    csv.row({1});
    CHECK(contents(folder / "run.csv") == "step\n1\n");
}

TEST_CASE("a file that may grow no further is named, with the limit", "[report][csv]") {
    const TemporaryFolder folder;
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit few_bytes{20, before.rlim_max};
    std::signal(SIGXFSZ, SIG_IGN);  // as run_main does
    CsvWriter csv(folder / "run.csv", {"step"});
    setrlimit(RLIMIT_FSIZE, &few_bytes);
    const std::string error =
        thrown<std::runtime_error>([&] { csv.row({"a cell of more than twenty bytes"}); });
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK(error == "'" + (folder / "run.csv").string() +
                       "' cannot be written (File too large): raise the limit (ulimit -f).");
}

TEST_CASE("an older file is replaced", "[report][csv]") {
    const TemporaryFolder folder;
    CsvWriter(folder / "run.csv", {"a long header"}).row({"and a long row"});
    CsvWriter(folder / "run.csv", {"b"}).row({2});
    CHECK(contents(folder / "run.csv") == "b\n2\n");
}

TEST_CASE("without a path rows are checked and go nowhere", "[report][csv]") {
    CsvWriter csv({}, {"a", "b"});
    csv.row({1, 2});
    CHECK(thrown<std::invalid_argument>([&] { csv.row({1}); }) ==
          "The CSV file has 2 columns, but a row has 1 cells: give one per column.");
}

TEST_CASE("headers are checked", "[report][csv]") {
    CHECK(thrown<std::invalid_argument>([] {
              CsvWriter({}, {"a", "b", "a"});
          }) == "The CSV column 'a' occurs twice: rename one.");
    CHECK_THROWS_AS(CsvWriter({}, {}), std::invalid_argument);
    CHECK_THROWS_AS(CsvWriter({}, {"a", ""}), std::invalid_argument);
}

TEST_CASE("a file that cannot be written is named, with the reason", "[report][csv]") {
    const TemporaryFolder folder;
    const std::string path = (folder / "none" / "run.csv").string();
    CHECK(thrown<std::runtime_error>([&] { CsvWriter(path, {"a"}); }) ==
          "'" + path +
              "' cannot be written (No such file or directory): give --csv a file in a folder that "
              "exists and is yours.");
    CHECK(thrown<std::runtime_error>([] { CsvWriter("/dev/full", {"a"}); }) ==
          "'/dev/full' cannot be written (No space left on device): make room on the disk, or give "
          "--csv a file on another one.");
}

TEST_CASE("what is read may end its lines as Windows does, or not at all", "[report][csv]") {
    const Csv csv = parse_csv("a,b\r\n\"1\r\n2\",\"x\"\r\n3,", "f");
    CHECK(csv.header == std::vector<std::string>{"a", "b"});
    REQUIRE(csv.rows.size() == 2);
    CHECK(csv.rows[0] == std::vector<std::string>{"1\r\n2", "x"});
    CHECK(csv.rows[1] == std::vector<std::string>{"3", ""});
}

TEST_CASE("damaged files are refused, with the line", "[report][csv]") {
    const auto message = [](const char* text) {
        return thrown<std::runtime_error>([&] { parse_csv(text, "f"); });
    };
    CHECK(message("") == "'f' is empty: a CSV file begins with a line of column names.");
    CHECK(message("a,b\n1,2\n3\n") ==
          "'f', line 3: the row has 1 cells and the header 2: the file is damaged or cut short.");
    CHECK(message("a,b\n\"1\n1\",2\n3\n") ==
          "'f', line 4: the row has 1 cells and the header 2: the file is damaged or cut short.");
    CHECK(message("a\n\"1\n2\n") ==
          "'f', line 2: a quote is never closed: the file is damaged or cut short.");
    CHECK(message("a\nx\"y\n") ==
          "'f', line 2: a quote stands within a plain cell: quote the whole cell and double the "
          "quote.");
    CHECK(message("a\n\"x\"y\n") ==
          "'f', line 2: text follows the closing quote of a cell: put a comma between them.");
    CHECK(thrown<std::runtime_error>([] { read_csv("/nowhere/run.csv"); }) ==
          "'/nowhere/run.csv' cannot be read: check the path.");
    CHECK(thrown<std::runtime_error>([] { read_csv("/"); }) ==
          "'/' cannot be read: check the path.");
}

TEST_CASE("cells that are not there are refused", "[report][csv]") {
    const Csv csv = parse_csv("a,b\n1,1x\n", "f");
    CHECK(csv.number(0, "a") == 1);
    CHECK(thrown<std::runtime_error>([&] { csv.number(0, "b"); }) ==
          "The CSV cell '1x' in column 'b' should be a number: correct the file.");
    // What is damaged may hold anything, and a terminal obeys it.
    const Csv damaged = parse_csv("a\n1\x1b[2J\x7f\n" + std::string(1000, '9') + "x\n", "f");
    CHECK(thrown<std::runtime_error>([&] { damaged.number(0, "a"); }) ==
          "The CSV cell '1\\x1b[2J\\x7f' in column 'a' should be a number: correct the file.");
    CHECK(thrown<std::runtime_error>([&] { damaged.number(1, "a"); }).size() < 150);
    CHECK(thrown<std::runtime_error>([&] { csv.text(0, "c"); }) ==
          "There is no CSV column 'c': look at the file's first line.");
    CHECK(thrown<std::runtime_error>([&] { csv.text(1, "a"); }) ==
          "There is no CSV row 1: there are 1, counted from 0.");
}

TEST_CASE("any cells at all come back as they were", "[report][csv][fuzz]") {
    const TemporaryFolder folder;
    std::mt19937 random(7);
    const std::string letters = std::string("a,\"\r\n \0;", 8) + "\xC3\xA8\xFF";
    for (int trial = 0; trial < 300; trial++) {
        const std::size_t columns = 1 + random() % 4;
        std::vector<std::string> header;
        for (std::size_t i = 0; i < columns; i++)
            header.push_back("column " + std::to_string(i));
        std::vector<std::vector<std::string>> rows(random() % 5, std::vector<std::string>(columns));
        CsvWriter csv(folder / "run.csv", header);
        for (auto& row : rows) {
            std::vector<CsvCell> cells;
            for (std::string& cell : row) {
                for (std::size_t length = random() % 6; length > 0; length--)
                    cell += letters[random() % letters.size()];
                cells.push_back(cell);
            }
            csv.row(cells);
        }
        const Csv back = read_csv(folder / "run.csv");
        REQUIRE(back.header == header);
        REQUIRE(back.rows == rows);
    }
}

TEST_CASE("a second file stands beside the first", "[report][csv]") {
    REQUIRE(beside("out/reduce.csv", "orders") == "out/reduce_orders.csv");
    REQUIRE(beside("reduce", "orders") == "reduce_orders");
    REQUIRE(beside("a.b/c.d.csv", "e") == "a.b/c.d_e.csv");
    REQUIRE(beside("", "orders").empty());
}

TEST_CASE("any bytes at all are read or refused, never crashed on", "[report][csv][fuzz]") {
    std::mt19937 random(11);
    const std::string letters = "a,\"\r\n";
    int read = 0, refused = 0;
    for (int trial = 0; trial < 20000; trial++) {
        std::string text;
        for (std::size_t length = random() % 20; length > 0; length--)
            text += letters[random() % letters.size()];
        try {
            const Csv csv = parse_csv(text, "fuzz");
            read++;
            for (const auto& row : csv.rows)
                REQUIRE(row.size() == csv.header.size());
        } catch (const std::runtime_error&) {
            refused++;
        }
    }
    CHECK(read > 1000);
    CHECK(refused > 1000);
}

}  // namespace ddp::test
