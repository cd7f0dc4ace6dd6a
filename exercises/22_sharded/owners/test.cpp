// The exercise owners: first a model for which each mistake gives a result of its own; then
// models whose elements do not divide, element by element.
#include "exercises/22_sharded/owners.hpp"

#include <algorithm>
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

std::size_t rounded_up(std::size_t elements, int world_size) {
    const auto ranks = static_cast<std::size_t>(world_size);
    return elements / ranks + (elements % ranks > 0);
}
std::size_t shard_of(const Sizes& sizes, int world_size) {
    return rounded_up(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}), world_size);
}

std::string text(const Sizes& numbers) {
    std::string all;
    for (const std::size_t number : numbers)
        all += (all.empty() ? "" : ", ") + std::to_string(number);
    return "{" + all + "}";
}
std::string text(const Place& place) {
    return text(Sizes{static_cast<std::size_t>(place.rank), place.offset});
}
std::string text(const Elements& range) {
    return text(Sizes{range.begin, range.end});
}
std::string text(const std::vector<Part>& parts) {
    std::string all;
    for (const Part& part : parts)
        all += text(Sizes{part.parameter, part.begin, part.end});
    return all.empty() ? "nothing" : all;
}

// Holds what mistakes make of a call, and what the student is told.
using Mistakes = std::vector<std::pair<std::string, std::string>>;

void require(const std::string& call, const std::string& yours, const std::string& right,
             const Mistakes& mistakes = {}) {
    std::string words;
    for (const auto& [wrong, told] : mistakes)
        if (words.empty() && yours == wrong)
            words = "\n" + told;
    if (yours != right)
        throw Wrong(call + " is " + right + "; you say " + yours + "." + words);
}

void check_flat_place() {
    require("flat_place({5, 3, 9}, 4, 2, 4)", text(flat_place({5, 3, 9}, 4, 2, 4)), "{2, 2}",
            {{"{0, 3}", "Elements are not dealt in turn: those of a rank are neighbours."},
             {"{3, 0}", "Round the length of a shard up: else the last elements have no rank."},
             {"{1, 1}", "You cut each parameter by itself. Here all of them are cut as one."},
             {"{0, 4}", "Other parameters come before this one."},
             {"{2, 4}", "The offset counts from the shard's first element."}});
    for (const Sizes& sizes : models)
        for (const int world_size : world_sizes) {
            const std::string call =
                "flat_place(" + text(sizes) + ", " + std::to_string(world_size);
            trying(call + ", ...)");
            const std::size_t shard = shard_of(sizes, world_size);
            std::size_t place = 0;
            for (std::size_t p = 0; p < sizes.size(); p++)
                for (std::size_t e = 0; e < sizes[p]; e++, place++)
                    require(call + ", " + std::to_string(p) + ", " + std::to_string(e) + ")",
                            text(flat_place(sizes, world_size, p, e)),
                            text(Place{static_cast<int>(place / shard), place % shard}));
        }
}

void check_flat_parts() {
    require("flat_parts({7, 2, 8}, 4, 1)", text(flat_parts({7, 2, 8}, 4, 1)),
            "{0, 5, 7}{1, 0, 2}{2, 0, 1}",
            {{"{0, 4, 7}{1, 0, 1}", "Round the length of a shard up."},
             {"{1, 0, 2}{2, 0, 1}", "A parameter that has begun in an earlier shard goes on here."},
             {"{0, 0, 7}{1, 0, 2}{2, 0, 8}", "A shard may begin and end within a parameter."},
             {"{0, 0, 2}{1, 2, 4}{2, 4, 5}", "begin and end count from the parameter's first."}});
    require("flat_parts({7, 2, 8}, 4, 3)", text(flat_parts({7, 2, 8}, 4, 3)), "{2, 6, 8}",
            {{"{2, 6, 11}", "A part ends where its parameter ends: behind it is padding."}});
    for (const Sizes& sizes : models)
        for (const int world_size : world_sizes)
            for (int rank = 0; rank < world_size; rank++) {
                const std::string call = "flat_parts(" + text(sizes) + ", " +
                                         std::to_string(world_size) + ", " + std::to_string(rank) +
                                         ")";
                trying(call);
                std::vector<Part> right;
                std::size_t place = 0;
                for (std::size_t p = 0; p < sizes.size(); p++)
                    for (std::size_t e = 0; e < sizes[p]; e++, place++) {
                        if (place / shard_of(sizes, world_size) != static_cast<std::size_t>(rank))
                            continue;
                        if (right.empty() || right.back().parameter != p)
                            right.push_back({p, e, e});
                        right.back().end++;
                    }
                require(call, text(flat_parts(sizes, world_size, rank)), text(right));
            }
}

void check_row_part() {
    require("row_part(10, 6, 4, 1)", text(row_part(10, 6, 4, 1)), "{18, 36}",
            {{"{15, 30}", "Don't cut a row: divide the rows among the ranks."},
             {"{12, 24}", "Round the number of rows up: else the last rows have no rank."},
             {"{18, 30}",
              "Ranks get the full number of rows as long as there are any. Don't "
              "spread them more evenly."}});
    require("row_part(10, 6, 4, 3)", text(row_part(10, 6, 4, 3)), "{54, 60}",
            {{"{54, 72}", "The last rank with rows ends where the rows end."}});
    for (const std::size_t rows : {8, 10, 7, 3, 1, 0})
        for (const std::size_t row_size : {1, 6, 5})
            for (const int world_size : {1, 2, 4, 6}) {
                const std::size_t most = rounded_up(rows, world_size);
                std::size_t left = rows;
                for (int rank = 0; rank < world_size; rank++) {
                    const std::size_t begin = rows - left, own = std::min(left, most);
                    require("row_part(" + std::to_string(rows) + ", " + std::to_string(row_size) +
                                ", " + std::to_string(world_size) + ", " + std::to_string(rank) +
                                ")",
                            text(row_part(rows, row_size, world_size, rank)),
                            text(Elements{begin * row_size, (begin + own) * row_size}));
                    left -= own;
                }
            }
}

}  // namespace

std::vector<Task> tasks() {
    return {{"flat_place", check_flat_place},
            {"flat_parts", check_flat_parts},
            {"row_part", check_row_part}};
}

}  // namespace ddp::test
