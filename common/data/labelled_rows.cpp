#include "common/data/labelled_rows.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "common/data/file.hpp"

namespace ddp {
namespace {

constexpr int max_classes = 10'000;  // more is taken for a column of measurements

std::vector<std::string> cells_of(std::string line) {
    if (!line.empty() && line.back() == '\r')  // a file from Windows
        line.pop_back();
    std::vector<std::string> cells(1);
    for (const char letter : line)
        if (letter == ',')
            cells.emplace_back();
        else if (letter != ' ' && letter != '\t' && letter != '"')
            cells.back() += letter;
    return cells;
}

// Returns the number that the whole cell is, if it is one and finite.
std::optional<float> number_in(const std::string& cell) {
    float number = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
    if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(number))
        return std::nullopt;
    return number;
}

// Returns the place of the label: of the last column with the name of one, or simply the last.
std::size_t label_among(const std::vector<std::string>& names) {
    for (std::size_t i = names.size(); i-- > 0;) {
        std::string name = names[i];
        std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
        if (name == "label" || name == "class" || name == "target" || (name == "y" && i == 0))
            return i;
    }
    return names.size() - 1;
}

class RowReader {
  public:
    explicit RowReader(const std::filesystem::path& file) : name_(file.string()) {}

    void name_columns(const std::vector<std::string>& names) {
        names_ = names;
        label_ = label_among(names);
        rows_.columns = static_cast<int>(names.size()) - 1;
    }
    void add(const std::vector<std::string>& cells, int line) {
        line_ = line;
        if (cells.size() < 2)
            refuse("has one column: a row needs numbers and a label");
        if (rows_.columns == 0)
            name_columns(std::vector<std::string>(cells.size()));  // it has no names
        if (static_cast<int>(cells.size()) != rows_.columns + 1)
            refuse("has " + std::to_string(cells.size()) + " columns, and those above have " +
                   std::to_string(rows_.columns + 1));
        for (std::size_t i = 0; i < cells.size(); i++) {
            const std::optional<float> number = number_in(cells[i]);
            if (i == label_)
                add_label(cells[i], number);
            else if (number)
                rows_.values.push_back(*number);
            else
                refuse("has '" + cells[i] + "' in column " + std::to_string(i + 1) +
                       ": it must be a finite number, as 0.5 or -1e-3");
        }
    }
    LabelledRows finish() {
        if (rows_.labels.empty())
            ddp::refuse(name_,
                        "has no rows: it must be a table of numbers with commas between them.");
        const std::set<int> classes(rows_.labels.begin(), rows_.labels.end());
        if (classes.size() == 1)
            ddp::refuse(name_,
                        "has one class only: every label, in " + label_column() + ", is " +
                            std::to_string(*classes.begin()) +
                            ": put the labels into the last column, or name theirs 'label'.");
        rows_.classes = *classes.rbegin() + 1;
        rows_.about = printable(name_ + ": the label is in " + label_column() + ": " +
                                std::to_string(classes.size()) + " classes, " +
                                std::to_string(*classes.begin()) + " to " +
                                std::to_string(*classes.rbegin())) +
                      "\n";
        return std::move(rows_);
    }

  private:
    void add_label(const std::string& cell, std::optional<float> label) {
        if (!label || *label != std::floor(*label) || *label < 0 || *label >= max_classes)
            refuse("has the label '" + cell + "' in " + label_column() +
                   ": it must be a whole number from 0 to " + std::to_string(max_classes - 1));
        rows_.labels.push_back(static_cast<int>(*label));
    }
    std::string label_column() const {
        return "column " + std::to_string(label_ + 1) +
               (names_[label_].empty() ? "" : ", '" + names_[label_] + "'");
    }
    [[noreturn]] void refuse(const std::string& problem) const {
        ddp::refuse(name_, "has a row that does not fit, line " + std::to_string(line_) + ": it " +
                               problem + ".");
    }
    std::string name_;
    int line_ = 0;
    std::vector<std::string> names_;  // of the columns
    std::size_t label_ = 0;           // the label's column
    LabelledRows rows_;
};

}  // namespace

LabelledRows read_labelled_rows(const std::filesystem::path& file) {
    const std::vector<std::uint8_t> bytes = read_file(file);
    std::string text(bytes.begin(), bytes.end());
    if (text.starts_with("\xEF\xBB\xBF"))  // what spreadsheets put before UTF-8
        text.erase(0, 3);
    std::istringstream input(text);
    RowReader reader(file);
    int number = 0;
    for (std::string line; std::getline(input, line);) {
        number++;
        const std::vector<std::string> cells = cells_of(line);
        const bool is_empty = cells.size() == 1 && cells[0].empty();
        const auto numbers = std::ranges::count_if(
            cells, [](const std::string& cell) { return number_in(cell).has_value(); });
        // scikit-learn's files begin with two counts and the names of the classes.
        const bool has_counts =
            cells.size() > 3 && numbers == 2 && number_in(cells[0]) && number_in(cells[1]);
        if (number == 1 && numbers == 0)
            reader.name_columns(cells);
        else if (!is_empty && (number > 1 || !has_counts))
            reader.add(cells, number);
    }
    return reader.finish();
}

void normalise_columns(LabelledRows& rows, LabelledRows* also) {
    const auto columns = static_cast<std::size_t>(rows.columns);
    for (std::size_t column = 0; column < columns; column++) {
        double sum = 0, squares = 0;
        for (std::size_t i = column; i < rows.values.size(); i += columns)
            sum += rows.values[i];
        const double mean = sum / rows.count();
        for (std::size_t i = column; i < rows.values.size(); i += columns)
            squares += (rows.values[i] - mean) * (rows.values[i] - mean);
        const double deviation = std::sqrt(squares / rows.count());
        const double scale = deviation > 0 ? 1 / deviation : 0;
        for (LabelledRows* each : {&rows, also})
            for (std::size_t i = column; each != nullptr && i < each->values.size(); i += columns)
                each->values[i] = static_cast<float>((each->values[i] - mean) * scale);
    }
}

}  // namespace ddp
