//     0xxxxxxx                              7 bits    from 0
//     110xxxxx 10xxxxxx                    11 bits    from 0x80
//     1110xxxx 10xxxxxx 10xxxxxx           16 bits    from 0x800, without the surrogates D800..DFFF
//     11110xxx 10xxxxxx 10xxxxxx 10xxxxxx  21 bits    from 0x10000 to 0x10FFFF
#include "20_transformer/words/utf8.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace ddp {
namespace {

struct Character {
    char32_t value;
    std::size_t bytes;  // 0: no character begins here
};

// Returns the character that `text`, which is not empty, begins with.
Character first_character(std::string_view text) {
    constexpr std::array<char32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
    const auto first = static_cast<std::uint8_t>(text[0]);
    // The first byte says how many follow.
    const std::size_t bytes = first < 0x80              ? 1
                              : (first >> 5) == 0b110   ? 2
                              : (first >> 4) == 0b1110  ? 3
                              : (first >> 3) == 0b11110 ? 4
                                                        : 0;
    if (bytes == 0 || bytes > text.size())
        return {0, 0};
    if (bytes == 1)
        return {first, 1};
    char32_t value = first & (0xFFu >> (bytes + 1));
    for (std::size_t i = 1; i < bytes; i++) {
        const auto next = static_cast<std::uint8_t>(text[i]);
        if ((next >> 6) != 0b10)
            return {0, 0};
        value = value << 6 | (next & 0x3Fu);
    }
    // A longer form of a small value, a surrogate and a value above Unicode's last are forbidden.
    const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
    if (value < smallest[bytes] || surrogate || value > 0x10FFFF)
        return {0, 0};
    return {value, bytes};
}

}  // namespace

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const Character next = first_character(text);
        if (next.bytes == 0)
            return false;
        text.remove_prefix(next.bytes);
    }
    return true;
}

std::u32string code_points(std::string_view text) {
    std::u32string all;
    while (!text.empty()) {
        const Character next = first_character(text);
        all += next.bytes == 0 ? replacement_character : next.value;
        text.remove_prefix(next.bytes == 0 ? 1 : next.bytes);
    }
    return all;
}

bool is_white_space(char32_t c) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace ddp
