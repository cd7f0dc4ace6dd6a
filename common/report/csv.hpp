#pragma once
// Comma-separated values (RFC 4180, with "\n" at the end of a line, as Unix tools expect). A run
// writes its measurements in this form, for plots and for tests.
#include <concepts>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ddp {

// One value: a text as it is, or a number with as many digits as it takes to read back the same
// number.
struct CsvCell {
    CsvCell(std::string value) : text(std::move(value)) {}
    CsvCell(const char* value) : text(value) {}
    CsvCell(std::integral auto value) : text(std::to_string(value)) {}
    CsvCell(double value);

    std::string text;
};

// Returns the path of a second file of the same run: "out/reduce.csv" and "orders" make
// "out/reduce_orders.csv". An empty path stays empty.
std::filesystem::path beside(const std::filesystem::path& csv, const std::string& what);

// Returns the sentence for a file that could not be opened or written: the reason, which errno has,
// and what to do about it. `option` is the one that has named the file.
std::string unwritable(const std::filesystem::path& path, const std::string& option);

class CsvWriter {
  public:
    // Replaces the file and writes the header line. With an empty path (no --csv was given) rows
    // are checked but not written. Throws std::invalid_argument if the header has no names, an
    // empty name or the same name twice, and std::runtime_error, with path and reason, if the file
    // cannot be written.
    CsvWriter(std::filesystem::path path, std::vector<std::string> header);
    ~CsvWriter();
    CsvWriter(const CsvWriter&) = delete;
    CsvWriter& operator=(const CsvWriter&) = delete;

    // Writes one line. The operating system has the whole line when the call returns, so a run that
    // is killed leaves whole lines. Throws std::invalid_argument unless there is one cell per
    // column, and std::runtime_error if the file cannot be written.
    void row(const std::vector<CsvCell>& cells);

  private:
    void write_line(const std::vector<std::string>& cells);

    std::filesystem::path path_;
    std::vector<std::string> header_;
    int file_ = -1;
};

// A CSV file that was read back. Every row has as many cells as the header.
struct Csv {
    std::vector<std::string> header;
    std::vector<std::vector<std::string>> rows;

    // Returns the cell in `row`, counted from 0, and in the column of that name. Throws
    // std::runtime_error if there is no such row or column.
    const std::string& text(std::size_t row, std::string_view column) const;
    // Returns the same cell as a number. Throws std::runtime_error if it is not one, as well.
    double number(std::size_t row, std::string_view column) const;
};

// Reads a CSV text, which error messages call `name`. Lines may end in "\r\n". Throws
// std::runtime_error, with the line, if the text breaks RFC 4180: a quote that is never closed or
// stands within a plain cell, a row with another number of cells than the header, no header at all.
Csv parse_csv(const std::string& text, const std::string& name);
// Reads a CSV file. Throws std::runtime_error as parse_csv does, or if the file cannot be read.
Csv read_csv(const std::filesystem::path& path);

}  // namespace ddp
