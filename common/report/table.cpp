#include "common/report/table.hpp"

#include <algorithm>
#include <cctype>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace ddp {
namespace {

constexpr std::size_t gap = 2;         // blanks between two columns
constexpr std::size_t least_text = 8;  // a text column is not cut below this

bool continues_character(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

bool is_absent(const std::string& cell) {
    return cell.empty() || cell == "n/a" || cell == "-" || cell == "inf" || cell == "-inf";
}

bool is_hash(const std::string& cell) {
    return cell.size() == 16 && cell.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool is_number(const std::string& cell) {
    const std::size_t start = cell.find_first_not_of("+-");
    return start != std::string::npos && start <= 1 && !is_hash(cell) &&
           std::isdigit(static_cast<unsigned char>(cell[start]));
}

std::vector<bool> numeric_columns(std::size_t columns,
                                  const std::vector<std::vector<std::string>>& rows) {
    std::vector<bool> numeric(columns, false);
    for (std::size_t column = 0; column < columns; column++) {
        bool any = false, all = true;
        for (const auto& row : rows) {
            any = any || is_number(row[column]);
            all = all && (is_number(row[column]) || is_absent(row[column]));
        }
        numeric[column] = any && all;
    }
    return numeric;
}

std::size_t total(const std::vector<std::size_t>& widths) {
    std::size_t sum = gap * (widths.size() - 1);
    for (const std::size_t width : widths)
        sum += width;
    return sum;
}

std::string line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                 const std::vector<bool>& numeric) {
    std::string result;
    for (std::size_t column = 0; column < cells.size(); column++) {
        const std::string cell = shortened(cells[column], widths[column]);
        const std::string blanks(widths[column] - display_width(cell), ' ');
        result += numeric[column] ? blanks + cell : cell + blanks;
        result += std::string(gap, ' ');
    }
    result.erase(result.find_last_not_of(' ') + 1);
    return result + "\n";
}

std::string rule(std::size_t width) {
    std::string result;
    for (std::size_t i = 0; i < width; i++)
        result += "─";
    return result + "\n";
}

std::string wrapped(const std::string& text, std::size_t width) {
    std::istringstream words(text);
    std::string result, current, word;
    while (words >> word) {
        if (!current.empty() && display_width(current) + 1 + display_width(word) > width) {
            result += current + "\n";
            current.clear();
        }
        current += (current.empty() ? "" : " ") + word;
    }
    return result + current + "\n";
}

}  // namespace

std::size_t display_width(const std::string& text) {
    return text.size() -
           static_cast<std::size_t>(std::count_if(text.begin(), text.end(), continues_character));
}

std::string shortened(const std::string& text, std::size_t width) {
    if (display_width(text) <= width)
        return text;
    if (width == 0)
        return "";
    std::size_t end = 0;
    for (std::size_t kept = 0; end < text.size(); end++) {
        if (continues_character(text[end]))
            continue;
        if (kept + 1 == width)
            break;
        kept++;
    }
    return text.substr(0, end) + "…";
}

Table::Table(std::string title, std::vector<std::string> header)
    : title_(std::move(title)), header_(std::move(header)) {
    if (header_.empty())
        throw std::invalid_argument("The table '" + title_ +
                                    "' has no columns: name at least one.");
}

void Table::row(std::vector<std::string> cells) {
    if (cells.size() != header_.size())
        throw std::invalid_argument("The table '" + title_ + "' has " +
                                    std::to_string(header_.size()) + " columns, but a row has " +
                                    std::to_string(cells.size()) +
                                    " entries: give one per column.");
    rows_.push_back(std::move(cells));
}

void Table::note(std::string text) {
    notes_.push_back(std::move(text));
}

std::vector<std::size_t> Table::widths(const std::vector<bool>& numeric) const {
    std::vector<std::size_t> result;
    for (std::size_t column = 0; column < header_.size(); column++) {
        std::size_t width = display_width(header_[column]);
        for (const auto& row : rows_)
            width = std::max(width, display_width(row[column]));
        result.push_back(width);
    }
    // Too wide: the widest text column gives way, one character at a time.
    while (total(result) > max_width) {
        std::size_t* widest = nullptr;
        for (std::size_t column = 0; column < result.size(); column++)
            if (!numeric[column] && result[column] > least_text &&
                (!widest || result[column] > *widest))
                widest = &result[column];
        if (!widest)
            throw std::invalid_argument("The table '" + title_ + "' needs " +
                                        std::to_string(total(result)) + " columns, more than the " +
                                        std::to_string(max_width) +
                                        " of a page: leave out or shorten some.");
        (*widest)--;
    }
    return result;
}

std::string Table::text() const {
    const std::vector<bool> numeric = numeric_columns(header_.size(), rows_);
    const std::vector<std::size_t> columns = widths(numeric);
    const std::string ruler = rule(total(columns));
    std::string result =
        wrapped(title_, max_width) + ruler + line(header_, columns, numeric) + ruler;
    for (const auto& row : rows_)
        result += line(row, columns, numeric);
    result += ruler;
    for (const std::string& note : notes_)
        result += wrapped(note, max_width);
    return result;
}

std::ostream& operator<<(std::ostream& stream, const Table& table) {
    return stream << table.text();
}

}  // namespace ddp
