#pragma once
// UTF-8 (RFC 3629): a character takes one to four bytes. What counts characters, or refuses a file
// in another encoding, needs to know them.
#include <string>
#include <string_view>

namespace ddp {

inline constexpr char32_t replacement_character = 0xFFFD;

// Returns whether every byte of `text` belongs to a character in its only allowed form.
bool is_utf8(std::string_view text);

// Returns the characters of `text` as code points. Each byte that belongs to none counts as one,
// the replacement character.
std::u32string code_points(std::string_view text);

// Returns whether Unicode calls this character white space, as Python's str.isspace() does.
bool is_white_space(char32_t character);

}  // namespace ddp
