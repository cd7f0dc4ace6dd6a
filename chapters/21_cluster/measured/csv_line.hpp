#pragma once
// A line of a CSV file that the reader brings. What is wrong with it is said with file and line.
#include <filesystem>
#include <stdexcept>
#include <string>

#include "common/report/csv.hpp"

namespace ddp {

struct CsvLine {
    const std::filesystem::path& path;
    const Csv& csv;
    std::size_t row;

    // Throws std::runtime_error: `reason` is what follows "line 3: ".
    [[noreturn]] void refuse(const std::string& reason) const {
        throw std::runtime_error("'" + path.string() + "', line " + std::to_string(row + 2) + ": " +
                                 reason);
    }
    const std::string& text(std::string_view column) const try {
        return csv.text(row, column);
    } catch (const std::runtime_error& error) {
        refuse(error.what());
    }
    // Returns a number, 0 or more; throws as refuse does if the cell holds something else.
    double number(std::string_view column) const try {
        const double value = csv.number(row, column);
        return value >= 0 && value < 1e18
                   ? value
                   : throw std::runtime_error("'" + std::string(column) +
                                              "' must be a number from 0 to 1e18.");
    } catch (const std::runtime_error& error) {
        refuse(error.what());
    }
};

}  // namespace ddp
