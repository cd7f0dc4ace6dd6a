#pragma once
// House prices: the smallest data that a model can learn from.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ddp {

struct House {
    float bedrooms;
    float bathrooms;
    float price;  // in units of 10,000
};

// The first two houses are the book's: 6 bedrooms and 2 bathrooms for 15, 5 and 2 for 12. The
// others have 2 to 8 bedrooms, 1 to 3 bathrooms, and follow the law that the first two obey
// exactly,
//     price = 3 bedrooms + 1 bathrooms - 5,
// plus normal noise of standard deviation 0.5. The first n houses of a longer list are the same.
std::vector<House> make_houses(std::size_t count, std::uint64_t seed);

// The reader's own houses: a CSV file of the header line "bedrooms,bathrooms,price" and one line of
// three numbers a house, without spaces and quotes. Throws DataError with line and column if it is
// anything else, or if there is no house in it.
std::vector<House> read_houses(const std::filesystem::path& path);

// The same for a text in memory; `name` stands in the error messages.
std::vector<House> parse_houses(std::string_view text, const std::string& name);

}  // namespace ddp
