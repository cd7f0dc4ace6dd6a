#include "common/report/csv.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace ddp {
namespace {

std::string quoted(const std::string& cell) {
    if (cell.find_first_of(",\"\r\n") == std::string::npos)
        return cell;
    std::string result = "\"";
    for (const char c : cell)
        result += c == '"' ? std::string("\"\"") : std::string(1, c);
    return result + "\"";
}

void check_header(const std::vector<std::string>& header) {
    if (header.empty())
        throw std::invalid_argument("A CSV file needs a header: name at least one column.");
    for (auto name = header.begin(); name != header.end(); name++) {
        if (name->empty())
            throw std::invalid_argument("A column of a CSV file has no name: give it one.");
        if (std::find(header.begin(), name, *name) != name)
            throw std::invalid_argument("The CSV column '" + *name + "' occurs twice: rename one.");
    }
}

// Returns the cell as it may be shown on a terminal: control characters as \x1b, and no more than
// its beginning. A damaged file may have anything in it.
std::string shown(const std::string& cell) {
    constexpr std::size_t most = 60;
    std::string result;
    for (const char c : cell.substr(0, most)) {
        const auto byte = static_cast<unsigned char>(c);
        char code[5];
        std::snprintf(code, sizeof code, "\\x%02x", byte);
        result += byte < 0x20 || byte == 0x7f ? code : std::string(1, c);
    }
    return result + (cell.size() > most ? "..." : "");
}

// Reads a text cell by cell, and counts its lines for error messages.
class Parser {
  public:
    Parser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

    bool at_end() const { return place_ == text_.size(); }

    std::vector<std::string> row() {
        std::vector<std::string> cells = {cell()};
        while (take(','))
            cells.push_back(cell());
        if (!end_of_line())
            fail("text follows the closing quote of a cell: put a comma between them");
        line_++;
        return cells;
    }

    // Throws for the row that was read last; `line_` is already at the line after it.
    [[noreturn]] void fail_last_row(const std::string& what) {
        line_--;
        fail(what);
    }

  private:
    std::string cell() { return take('"') ? quoted_cell() : plain_cell(); }

    std::string plain_cell() {
        const std::size_t start = place_;
        while (!at_end() && text_[place_] != ',' && !at_line_end()) {
            if (text_[place_] == '"')
                fail(
                    "a quote stands within a plain cell: quote the whole cell and double the "
                    "quote");
            place_++;
        }
        return std::string(text_.substr(start, place_ - start));
    }

    std::string quoted_cell() {
        std::string result;
        const std::size_t opened_at = line_;
        while (!at_end()) {
            const char c = text_[place_++];
            if (c == '"' && !take('"'))
                return result;
            line_ += c == '\n';
            result += c;
        }
        line_ = opened_at;
        fail("a quote is never closed: the file is damaged or cut short");
    }

    bool at_line_end() const {
        const std::string_view rest = text_.substr(place_);
        return rest.starts_with("\n") || rest.starts_with("\r\n");
    }

    bool end_of_line() {
        take('\r');
        return take('\n') || at_end();
    }

    bool take(char expected) {
        const bool there = !at_end() && text_[place_] == expected;
        place_ += there;
        return there;
    }

    [[noreturn]] void fail(const std::string& what) const {
        throw std::runtime_error("'" + name_ + "', line " + std::to_string(line_) + ": " + what +
                                 ".");
    }

    std::string_view text_;
    const std::string& name_;
    std::size_t place_ = 0;
    std::size_t line_ = 1;
};

}  // namespace

CsvCell::CsvCell(double value) {
    char digits[32];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
    text.assign(digits, end);
}

std::filesystem::path beside(const std::filesystem::path& csv, const std::string& what) {
    return csv.empty()
               ? csv
               : csv.parent_path() / (csv.stem().string() + "_" + what + csv.extension().string());
}

std::string unwritable(const std::filesystem::path& path, const std::string& option) {
    const int error = errno;
    const std::string cure =
        error == ENOSPC || error == EDQUOT
            ? "make room on the disk, or give " + option + " a file on another one."
        : error == EFBIG ? "raise the limit (ulimit -f)."
                         : "give " + option + " a file in a folder that exists and is yours.";
    return "'" + path.string() + "' cannot be written (" + std::generic_category().message(error) +
           "): " + cure;
}

CsvWriter::CsvWriter(std::filesystem::path path, std::vector<std::string> header)
    : path_(std::move(path)), header_(std::move(header)) {
    check_header(header_);
    if (path_.empty())
        return;
    file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file_ < 0)
        throw std::runtime_error(unwritable(path_, "--csv"));
    write_line(header_);
}

CsvWriter::~CsvWriter() {
    if (file_ >= 0)
        close(file_);
}

void CsvWriter::row(const std::vector<CsvCell>& cells) {
    if (cells.size() != header_.size())
        throw std::invalid_argument("The CSV file has " + std::to_string(header_.size()) +
                                    " columns, but a row has " + std::to_string(cells.size()) +
                                    " cells: give one per column.");
    std::vector<std::string> texts;
    for (const CsvCell& cell : cells)
        texts.push_back(cell.text);
    if (file_ >= 0)
        write_line(texts);
}

void CsvWriter::write_line(const std::vector<std::string>& cells) {
    std::string line = quoted(cells[0]);
    for (std::size_t i = 1; i < cells.size(); i++)
        line += "," + quoted(cells[i]);
    line += "\n";
    for (std::string_view rest = line; !rest.empty();) {
        const ssize_t written = write(file_, rest.data(), rest.size());
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            throw std::runtime_error(unwritable(path_, "--csv"));
        rest.remove_prefix(static_cast<std::size_t>(written));
    }
}

const std::string& Csv::text(std::size_t row, std::string_view column) const {
    const auto found = std::find(header.begin(), header.end(), column);
    if (found == header.end())
        throw std::runtime_error("There is no CSV column '" + std::string(column) +
                                 "': look at the file's first line.");
    if (row >= rows.size())
        throw std::runtime_error("There is no CSV row " + std::to_string(row) + ": there are " +
                                 std::to_string(rows.size()) + ", counted from 0.");
    return rows[row][static_cast<std::size_t>(found - header.begin())];
}

double Csv::number(std::size_t row, std::string_view column) const {
    const std::string& cell = text(row, column);
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size())
        throw std::runtime_error("The CSV cell '" + shown(cell) + "' in column '" +
                                 std::string(column) + "' should be a number: correct the file.");
    return value;
}

Csv parse_csv(const std::string& text, const std::string& name) {
    if (text.empty())
        throw std::runtime_error("'" + name +
                                 "' is empty: a CSV file begins with a line of column names.");
    Parser parser(text, name);
    Csv result;
    result.header = parser.row();
    while (!parser.at_end()) {
        result.rows.push_back(parser.row());
        if (result.rows.back().size() != result.header.size())
            parser.fail_last_row("the row has " + std::to_string(result.rows.back().size()) +
                                 " cells and the header " + std::to_string(result.header.size()) +
                                 ": the file is damaged or cut short");
    }
    return result;
}

Csv read_csv(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream || !std::filesystem::is_regular_file(path))
        throw std::runtime_error("'" + path.string() + "' cannot be read: check the path.");
    return parse_csv({std::istreambuf_iterator<char>(stream), {}}, path.string());
}

}  // namespace ddp
