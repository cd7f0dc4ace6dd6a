#pragma once
// Comma-separated values (RFC 4180, with "\n" at the end of a line, as Unix tools expect): what a
// run measured, for plots and for tests.
#include <concepts>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ddp {

// One value: text as it is, a number with as many digits as bring the same number back.
struct CsvCell {
    CsvCell(std::string value) : text(std::move(value)) {}
    CsvCell(const char* value) : text(value) {}
    CsvCell(std::integral auto value) : text(std::to_string(value)) {}
    CsvCell(double value);

    std::string text;
};

// The path of a second file of the same run: "out/reduce.csv" and "orders" make
// "out/reduce_orders.csv"; an empty path stays empty.
std::filesystem::path beside(const std::filesystem::path& csv, const std::string& what);

class CsvWriter {
  public:
    // Replaces the file and writes the header line. With an empty path (no --csv was given) rows
    // are checked and go nowhere. Throws std::invalid_argument for a header without names, with an
    // empty one or with one twice, and std::runtime_error with path and reason where the file
    // cannot be written.
    CsvWriter(std::filesystem::path path, std::vector<std::string> header);
    ~CsvWriter();
    CsvWriter(const CsvWriter&) = delete;
    CsvWriter& operator=(const CsvWriter&) = delete;

    // Hands the whole line to the operating system before it returns: a run that is killed leaves
    // whole lines. Throws std::invalid_argument unless there is one cell per column,
    // std::runtime_error as above.
    void row(const std::vector<CsvCell>& cells);

  private:
    void write_line(const std::vector<std::string>& cells);

    std::filesystem::path path_;
    std::vector<std::string> header_;
    int file_ = -1;
};

// A file read back. Every row has as many cells as the header.
struct Csv {
    std::vector<std::string> header;
    std::vector<std::vector<std::string>> rows;

    // The cell by its column's name, or as a number. Throws std::runtime_error if there is no such
    // row or column, or if the cell is not a number.
    const std::string& text(std::size_t row, std::string_view column) const;
    double number(std::size_t row, std::string_view column) const;
};

// Throws std::runtime_error, naming the line, if anything is not as RFC 4180 has it: quotes that
// stay open or stand within a plain cell, a row with another number of cells than the header, no
// header at all. `name` stands in the messages. Lines may end in "\r\n".
Csv parse_csv(const std::string& text, const std::string& name);
Csv read_csv(const std::filesystem::path& path);

}  // namespace ddp
