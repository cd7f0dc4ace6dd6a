#pragma once
// A table that fits a page of 100 columns:
//
//     The 5 MB file for 7 friends
//     ─────────────────────────────────
//     method        predicted  measured
//     ─────────────────────────────────
//     one by one       35.0 s    35.1 s
//     by doubling      15.0 s    15.2 s
//     ─────────────────────────────────
//     The link is simulated.
//
// A column in which every entry is a number (with or without a unit) is aligned to the right, any
// other to the left. Every UTF-8 character is taken to be one column wide, which holds for all that
// the book prints.
#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace ddp {

class Table {
  public:
    static constexpr std::size_t max_width = 100;

    // Throws std::invalid_argument if `header` is empty.
    Table(std::string title, std::vector<std::string> header);

    // Adds a row with one entry per column. Throws std::invalid_argument for another number of
    // entries.
    void row(std::vector<std::string> cells);

    // Adds a remark under the table; each remark begins on a new line.
    void note(std::string text);

    // Returns the table, at most max_width columns wide. Text columns that do not fit are cut and
    // end in "…"; titles and notes are wrapped. Throws std::invalid_argument if numbers and headers
    // alone are wider than max_width.
    std::string text() const;

  private:
    std::vector<std::size_t> widths(const std::vector<bool>& numeric) const;

    std::string title_;
    std::vector<std::string> header_;
    std::vector<std::vector<std::string>> rows_;
    std::vector<std::string> notes_;
};

std::ostream& operator<<(std::ostream& stream, const Table& table);

// Returns the columns that `text` (UTF-8) takes on a terminal: the number of its characters,
// counted without decoding them.
std::size_t display_width(const std::string& text);

// Returns `text`, or its beginning and "…" if it is wider than `width`. Never cuts within a
// character.
std::string shortened(const std::string& text, std::size_t width);

}  // namespace ddp
