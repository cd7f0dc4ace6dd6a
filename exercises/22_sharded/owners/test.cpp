// The exercise owners: models whose elements do not divide, element by element, and with more ranks
// than elements.
#include "exercises/22_sharded/owners.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Sizes = std::vector<std::size_t>;

// The first divides by two ranks and by four. Some have empty parameters, also several in a row.
const std::vector<Sizes> models = {{5, 3, 8},     {7},    {5, 0, 3, 9, 1},
                                   {1, 2, 30, 4}, {2, 1}, {0, 4, 0, 0, 3, 0}};
constexpr int world_sizes[] = {2, 3, 4, 7, 1};

std::size_t total(const Sizes& sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}
std::size_t shard_of(const Sizes& sizes, int world_size) {
    const auto ranks = static_cast<std::size_t>(world_size);
    return total(sizes) / ranks + (total(sizes) % ranks > 0);
}

std::string to_string(const Sizes& sizes, int world_size) {
    std::string text = "Parameters of ";
    for (std::size_t i = 0; i < sizes.size(); i++)
        text += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
    return text + " elements, " + std::to_string(world_size) + " ranks";
}
std::string to_string(const Place& place) {
    return "rank " + std::to_string(place.rank) + ", offset " + std::to_string(place.offset);
}
std::string to_string(const std::vector<Part>& parts) {
    std::string text;
    for (const Part& part : parts)
        text += (text.empty() ? "" : "; ") + std::to_string(part.begin) + " to " +
                std::to_string(part.end) + " of parameter " + std::to_string(part.parameter);
    return text.empty() ? "nothing" : text;
}

// ---- Task flat_place

// Returns what wrong places tell, or "": which wrong rule gives all of them.
std::string cause_of(const Sizes& sizes, int world_size) {
    using Rule = std::function<Place(std::size_t parameter, std::size_t element)>;
    const auto ranks = static_cast<std::size_t>(world_size);
    const std::size_t all = total(sizes), shard = shard_of(sizes, world_size);
    const auto before = [&](std::size_t p) {
        return total({sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(p)});
    };
    const auto cut = [](std::size_t place, std::size_t length) {
        const std::size_t some = std::max(length, std::size_t{1});
        return Place{static_cast<int>(place / some), place % some};
    };
    const std::pair<const char*, Rule> rules[] = {
        {"Elements are not dealt in turn: a rank has elements that are neighbours.",
         [&](std::size_t p, std::size_t e) {
             return Place{static_cast<int>((before(p) + e) % ranks), (before(p) + e) / ranks};
         }},
        {"Round the length of a shard up: rounded down, the last elements have no rank.",
         [&](std::size_t p, std::size_t e) { return cut(before(p) + e, all / ranks); }},
        {"There is no padding if the number of elements divides.",
         [&](std::size_t p, std::size_t e) { return cut(before(p) + e, all / ranks + 1); }},
        {"You cut each parameter by itself. In this layout all of them are cut as one.",
         [&](std::size_t p, std::size_t e) { return cut(e, shard_of({sizes[p]}, world_size)); }},
        {"Other parameters come before this one.",
         [&](std::size_t, std::size_t e) { return cut(e, shard); }},
        {"The offset counts from the shard's first element, not from the parameter's.",
         [&](std::size_t p, std::size_t e) {
             return Place{cut(before(p) + e, shard).rank, e};
         }}};
    for (const auto& [words, rule] : rules) {
        bool is_this = true;
        for (std::size_t p = 0; p < sizes.size(); p++)
            for (std::size_t e = 0; e < sizes[p]; e++)
                is_this = is_this && flat_place(sizes, world_size, p, e) == rule(p, e);
        if (is_this)
            return words;
    }
    return "";
}

void check_flat_place() {
    for (const Sizes& sizes : models)
        for (const int world_size : world_sizes) {
            trying(to_string(sizes, world_size) + ": each element is asked for.");
            const std::size_t shard = shard_of(sizes, world_size);
            std::size_t place = 0;
            for (std::size_t p = 0; p < sizes.size(); p++)
                for (std::size_t e = 0; e < sizes[p]; e++, place++) {
                    const Place right{static_cast<int>(place / shard), place % shard};
                    const Place found = flat_place(sizes, world_size, p, e);
                    if (found != right)
                        throw Wrong(to_string(sizes, world_size) + ": you say that element " +
                                    std::to_string(e) + " of parameter " + std::to_string(p) +
                                    " is at " + to_string(found) + "; right is " +
                                    to_string(right) + ".\n" + cause_of(sizes, world_size));
                }
            held();
        }
}

// ---- Task flat_parts

// Returns the parts by asking for each element of the shard; `shard` as long as it should be.
std::vector<Part> parts_of(const Sizes& sizes, std::size_t shard, int rank) {
    std::vector<Part> parts;
    std::size_t place = 0;
    for (std::size_t p = 0; p < sizes.size(); p++)
        for (std::size_t e = 0; e < sizes[p]; e++, place++) {
            if (shard == 0 || place / shard != static_cast<std::size_t>(rank))
                continue;
            if (parts.empty() || parts.back().parameter != p)
                parts.push_back({p, e, e});
            parts.back().end = e + 1;
        }
    return parts;
}

// Returns what wrong parts tell, or "".
std::string cause_of(const std::vector<Part>& found, const std::vector<Part>& right,
                     const Sizes& sizes, int world_size, int rank) {
    if (found == parts_of(sizes, total(sizes) / static_cast<std::size_t>(world_size), rank))
        return "Round the length of a shard up.\n";
    if (found.size() < right.size() &&
        std::ranges::all_of(found, [](const Part& part) { return part.begin == 0; }) &&
        !right.empty() && right[0].begin > 0)
        return "A parameter that has begun in an earlier shard goes on in this one.\n";
    if (found.size() == right.size() && !right.empty()) {
        bool is_whole = true, is_offset = true;
        for (std::size_t i = 0; i < right.size(); i++) {
            is_whole &= found[i].begin == 0 && found[i].end == sizes[found[i].parameter];
            is_offset &= found[i].end - found[i].begin == right[i].end - right[i].begin;
        }
        if (is_whole)
            return "A shard may begin and end within a parameter.\n";
        if (is_offset)
            return "begin and end count from the parameter's first element.\n";
    }
    for (const Part& part : found)
        if (part.parameter < sizes.size() && part.end > sizes[part.parameter])
            return "A part ends after the end of its parameter: there is the next parameter, or "
                   "padding.\n";
    return "";
}

void check_flat_parts() {
    for (const Sizes& sizes : models)
        for (const int world_size : world_sizes) {
            for (int rank = 0; rank < world_size; rank++) {
                trying(to_string(sizes, world_size) + ": what has rank " + std::to_string(rank) +
                       "?");
                const auto right = parts_of(sizes, shard_of(sizes, world_size), rank);
                const std::vector<Part> found = flat_parts(sizes, world_size, rank);
                if (found != right)
                    throw Wrong(to_string(sizes, world_size) + ": you say that rank " +
                                std::to_string(rank) + " has " + to_string(found) + "; right is " +
                                to_string(right) + ".\n" +
                                cause_of(found, right, sizes, world_size, rank));
            }
            held();
        }
}

// ---- Task row_part

std::string to_string(const Elements& range) {
    return "elements " + std::to_string(range.begin) + " to " + std::to_string(range.end);
}

// Returns what a wrong range tells, or "".
std::string cause_of(const Elements& found, const Elements& right, std::size_t rows,
                     std::size_t row_size, int world_size, int rank) {
    const auto ranks = static_cast<std::size_t>(world_size), r = static_cast<std::size_t>(rank);
    if (found.end > rows * row_size)
        return "The last rank with rows ends where the rows end.\n";
    const std::size_t elements = rows * row_size, most = (elements + ranks - 1) / ranks;
    if (found.begin % row_size != 0 || found.end % row_size != 0 ||
        found == Elements{std::min(elements, r * most), std::min(elements, (r + 1) * most)})
        return "Don't cut a row: divide the rows among the ranks, and not the elements.\n";
    if (found == Elements{r * (rows / ranks) * row_size, (r + 1) * (rows / ranks) * row_size})
        return "Round the number of rows up: rounded down, the last rows have no rank.\n";
    if (found.end - found.begin != right.end - right.begin)
        return "Ranks get the full number of rows as long as there are any. Don't spread them more "
               "evenly.\n";
    return "";
}

void check_row_part() {
    for (const std::size_t rows : {8, 10, 7, 3, 1, 0})
        for (const std::size_t row_size : {1, 6, 5})
            for (const int world_size : {1, 2, 4, 6}) {
                const auto ranks = static_cast<std::size_t>(world_size);
                const std::size_t most = rows / ranks + (rows % ranks > 0);
                std::size_t left = rows;
                for (int rank = 0; rank < world_size; rank++) {
                    const std::size_t own = std::min(left, most);
                    const Elements right{(rows - left) * row_size, (rows - left + own) * row_size};
                    left -= own;
                    const Elements found = row_part(rows, row_size, world_size, rank);
                    if (found != right)
                        throw Wrong(std::to_string(rows) + " rows of " + std::to_string(row_size) +
                                    ", " + std::to_string(world_size) +
                                    " ranks: you say that rank " + std::to_string(rank) + " gets " +
                                    to_string(found) + "; right is " + to_string(right) + ".\n" +
                                    cause_of(found, right, rows, row_size, world_size, rank));
                }
                held();
            }
}

}  // namespace

std::vector<Task> tasks() {
    return {{"flat_place", check_flat_place},
            {"flat_parts", check_flat_parts},
            {"row_part", check_row_part}};
}

}  // namespace ddp::test
