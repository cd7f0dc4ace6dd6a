// The bytes of a message: whole, in pieces, and of something else.
#include "05_ranks/coordinator/message.hpp"

#include <stdexcept>

#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

Message example() {
    return {Message::Kind::gathered,
            0x0102030405060708,
            77,
            "all_gather",
            {"", std::string("\0with zeros\xff", 12), "third"}};
}

TEST_CASE("a message travels whole") {
    for (int kind = 0; kind <= static_cast<int>(Message::last_kind); kind++) {
        Message message = example();
        message.kind = static_cast<Message::Kind>(kind);
        std::string bytes = encode(message);
        REQUIRE(decode(bytes) == message);
        REQUIRE(bytes.empty());
    }
}

TEST_CASE("a message that comes in pieces is waited for, and the next one is left alone") {
    const std::string whole = encode(example());
    std::string bytes;
    for (char byte : whole.substr(0, whole.size() - 1)) {
        bytes += byte;
        REQUIRE_FALSE(decode(bytes).has_value());
    }
    bytes += whole.back();
    bytes += whole.substr(0, 3);
    REQUIRE(decode(bytes) == example());
    REQUIRE(bytes == whole.substr(0, 3));
}

TEST_CASE("what is no message is refused") {
    std::string web = "GET / HTTP/1.1\r\n\r\n";
    REQUIRE_THROWS_WITH(decode(web), "these bytes are not a message of this book's ranks");
    std::string short_fields = std::string("\x03\0\0\0abc", 7);
    REQUIRE_THROWS_AS(decode(short_fields), std::runtime_error);
    REQUIRE_THROWS_WITH(
        encode({Message::Kind::call, 1, 1, "all_gather", {std::string(max_message_bytes, 'x')}}),
        ContainsSubstring("is too long"));
}

}  // namespace
}  // namespace ddp::test
