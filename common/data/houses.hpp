#pragma once
// House prices: a data set small enough to check by hand.
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

// Makes `count` houses. The first two are the book's: 6 bedrooms and 2 bathrooms for 15, 5 and 2
// for 12. They obey exactly the law
//     price = 3 bedrooms + 1 bathrooms - 5.
// The others have 2 to 8 bedrooms and 1 to 3 bathrooms, and obey it up to normal noise of standard
// deviation 0.5. The first n houses of a longer list are the same.
std::vector<House> make_houses(std::size_t count, std::uint64_t seed);

// Reads the reader's own houses from a CSV file: the header line "bedrooms,bathrooms,price", and
// for each house a line of three numbers, without spaces or quotes. Throws DataError, with line and
// column, if the file has another format or no house.
std::vector<House> read_houses(const std::filesystem::path& path);

// Does the same with a text in memory. Error messages call it `name`.
std::vector<House> parse_houses(std::string_view text, const std::string& name);

}  // namespace ddp
