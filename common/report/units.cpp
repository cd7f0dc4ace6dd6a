#include "common/report/units.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <span>

namespace ddp {
namespace {

struct Unit {
    std::string_view name;
    double size;
};

constexpr Unit byte_units[] = {
    {"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
constexpr Unit time_units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
constexpr Unit rate_units[] = {
    {"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}};
constexpr Unit link_units[] = {{"B/s", 1},          {"kB/s", 1e3},      {"MB/s", 1e6},
                               {"GB/s", 1e9},       {"KiB/s", 0x1p10},  {"MiB/s", 0x1p20},
                               {"GiB/s", 0x1p30},   {"bit/s", 0.125},   {"kbit/s", 1e3 / 8},
                               {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8}};

// Returns the number of decimals that make three significant digits of `value`, which is not
// negative.
int decimals_of(double value) {
    return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

// Returns the largest unit in which `value`, as printed, is at least 1: 999.7 us is printed as 1.00
// ms.
const Unit& unit_of(double value, std::span<const Unit> units) {
    std::size_t best = 0;
    while (best + 1 < units.size()) {
        const double in_next = value / units[best + 1].size;
        const double step = units[best + 1].size / units[best].size;
        if (in_next < 1 - 0.5 / step)
            break;
        best++;
    }
    return units[best];
}

std::string format_in(double value, std::span<const Unit> units) {
    if (std::isnan(value))
        return "n/a";
    const Unit& unit = unit_of(std::abs(value), units);
    const double scaled = value / unit.size;
    return format_fixed(scaled, decimals_of(std::abs(scaled))) + " " + std::string(unit.name);
}

// Drops zeros after the decimal point: "1.50" becomes "1.5", "64.0" becomes "64".
std::string trimmed(std::string number) {
    if (number.find('.') == std::string::npos)
        return number;
    number.erase(number.find_last_not_of('0') + 1);
    if (number.back() == '.')
        number.pop_back();
    return number;
}

std::optional<double> parse_in(std::string_view text, std::span<const Unit> units) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || !std::isfinite(number) || std::signbit(number))
        return std::nullopt;
    const std::string_view name = text.substr(static_cast<std::size_t>(end - text.data()));
    for (const Unit& unit : units)
        if (unit.name == name && std::isfinite(number * unit.size))
            return number * unit.size;
    return std::nullopt;
}

}  // namespace

std::string format_bytes(double bytes) {
    if (std::isnan(bytes))
        return "n/a";
    const Unit& unit = unit_of(std::abs(bytes), byte_units);
    const double scaled = bytes / unit.size;
    const std::string number = trimmed(format_fixed(scaled, decimals_of(std::abs(scaled))));
    return number + " " + std::string(unit.name);
}

std::string format_seconds(double seconds) {
    return seconds == 0 ? "0 s" : format_in(seconds, time_units);
}

std::string format_bandwidth(double bytes_per_second) {
    return format_in(bytes_per_second, rate_units);
}

std::string format_fixed(double value, int decimals) {
    if (std::isnan(value))
        return "n/a";
    const int length = std::snprintf(nullptr, 0, "%.*f", decimals, value);
    std::string text(static_cast<std::size_t>(length), '\0');
    std::snprintf(text.data(), text.size() + 1, "%.*f", decimals, value);
    return text;
}

std::string format_percent(double fraction) {
    return std::isnan(fraction) ? "n/a" : format_fixed(100 * fraction, 1) + " %";
}

std::string format_count(std::int64_t count) {
    std::string text = std::to_string(count);
    const std::size_t first_digit = count < 0 ? 1 : 0;
    for (std::size_t place = text.size(); place > first_digit + 3;) {
        place -= 3;
        text.insert(place, ",");
    }
    return text;
}

std::string format_count(std::int64_t count, const std::string& thing) {
    return format_count(count) + " " + thing + (count == 1 ? "" : "s");
}

std::optional<double> parse_seconds(std::string_view text) {
    return parse_in(text, time_units);
}

std::optional<double> parse_bandwidth(std::string_view text) {
    return parse_in(text, link_units);
}

}  // namespace ddp
