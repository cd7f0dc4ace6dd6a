#include "common/data/houses.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "common/data/file.hpp"
#include "common/data/random.hpp"

namespace ddp {
namespace {

constexpr std::string_view header = "bedrooms,bathrooms,price";
constexpr std::array<std::string_view, 3> columns = {"bedrooms", "bathrooms", "price"};

// The place in a text that is being read, for error messages.
struct Place {
    const std::string& name;
    std::size_t line;

    [[noreturn]] void fail(const std::string& what) const {
        throw DataError("'" + name + "', line " + std::to_string(line) + ": " + what);
    }
};

// Returns `text` in quotes for a message: printable characters only, and cut after 30 of them.
std::string quoted(std::string_view text) {
    std::string shown(text.substr(0, 30));
    for (char& c : shown)
        if (c < ' ' || c > '~')
            c = '?';
    return "'" + shown + (text.size() > 30 ? "...'" : "'");
}

// Removes the front of `text` up to and including the next `separator`, or all of it if there is
// none; returns what stood before the separator.
std::string_view take_until(char separator, std::string_view& text) {
    const std::size_t length = std::min(text.find(separator), text.size());
    const std::string_view front = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    return front;
}

// Removes the first line of `text` and returns it without its line end.
std::string_view take_line(std::string_view& text) {
    std::string_view line = take_until('\n', text);
    if (line.ends_with('\r'))
        line.remove_suffix(1);
    return line;
}

float parse_number(std::string_view text, std::size_t column, const Place& place) {
    float number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end || !std::isfinite(number))
        place.fail("column " + std::to_string(column + 1) + " (" + std::string(columns[column]) +
                   ") holds " + quoted(text) +
                   ", but a number is expected there: write it like 2 or 2.5, without spaces.");
    return number;
}

House parse_house(std::string_view line, const Place& place) {
    const std::size_t found = std::count(line.begin(), line.end(), ',') + 1;
    if (found != columns.size())
        place.fail(quoted(line) + " should have 3 columns, not " + std::to_string(found) +
                   ": write bedrooms, bathrooms and price, separated by commas.");
    std::array<float, 3> numbers;
    for (std::size_t column = 0; column < columns.size(); column++)
        numbers[column] = parse_number(take_until(',', line), column, place);
    return {numbers[0], numbers[1], numbers[2]};
}

}  // namespace

std::vector<House> make_houses(std::size_t count, std::uint64_t seed) {
    std::vector<House> houses = {{6, 2, 15}, {5, 2, 12}};
    houses.resize(std::min(count, houses.size()));
    houses.reserve(count);
    Random random(seed);
    while (houses.size() < count) {
        const float bedrooms = 2.0f + static_cast<float>(random.below(7));
        const float bathrooms = 1.0f + static_cast<float>(random.below(3));
        const float price = 3 * bedrooms + 1 * bathrooms - 5 + 0.5f * random.normal();
        houses.push_back({bedrooms, bathrooms, price});
    }
    return houses;
}

std::vector<House> parse_houses(std::string_view text, const std::string& name) {
    if (text.starts_with("\xEF\xBB\xBF"))  // what spreadsheets put before UTF-8
        text.remove_prefix(3);
    Place place{name, 1};
    const std::string_view first = take_line(text);
    if (first != header)
        place.fail(quoted(first) + " stands where the header is expected: begin the file with " +
                   quoted(header) + ".");
    std::vector<House> houses;
    while (!text.empty()) {
        place.line++;
        houses.push_back(parse_house(take_line(text), place));
    }
    if (houses.empty())
        place.fail("no house follows the header: add a line like '6,2,15'.");
    return houses;
}

std::vector<House> read_houses(const std::filesystem::path& path) {
    const std::vector<std::uint8_t> bytes = read_file(path);
    return parse_houses({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

}  // namespace ddp
