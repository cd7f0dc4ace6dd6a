#include "05_ranks/coordinator/message.hpp"

#include <stdexcept>

namespace ddp {
namespace {

void put(std::string& bytes, std::uint64_t value, int width) {
    for (int i = 0; i < width; i++)
        bytes += static_cast<char>(value >> (8 * i));
}

void put(std::string& bytes, const std::string& text) {
    put(bytes, text.size(), 4);
    bytes += text;
}

std::uint64_t number_at(const std::string& bytes, std::size_t position, int width) {
    std::uint64_t value = 0;
    for (int i = 0; i < width; i++)
        value |= std::uint64_t{static_cast<unsigned char>(bytes[position + i])} << (8 * i);
    return value;
}

[[noreturn]] void throw_no_message() {
    throw std::runtime_error("these bytes are not a message of this book's ranks");
}

// Reads the fields of a message in order, and never beyond its end.
class Reader {
  public:
    explicit Reader(const std::string& bytes) : bytes_(bytes) {}

    std::uint64_t number(int width) {
        require(static_cast<std::size_t>(width));
        const std::uint64_t value = number_at(bytes_, position_, width);
        position_ += static_cast<std::size_t>(width);
        return value;
    }
    std::string text() {
        const std::size_t size = number(4);
        require(size);
        position_ += size;
        return bytes_.substr(position_ - size, size);
    }
    bool at_end() const { return position_ == bytes_.size(); }

  private:
    void require(std::size_t count) const {
        if (bytes_.size() - position_ < count)
            throw_no_message();
    }

    const std::string& bytes_;
    std::size_t position_ = 0;
};

}  // namespace

std::string describe_call(const Message& call) {
    return call.text + " (call " + std::to_string(call.number) + ")";
}

RunResult RunResult::from(const Message& message) {
    return {message.text, static_cast<int>(message.number), !message.parts.empty()};
}

Message RunResult::to_message(std::uint64_t run_id) const {
    Message message{Message::Kind::result, run_id, static_cast<std::uint64_t>(reporter), cause, {}};
    if (is_last)
        message.parts.push_back("a rank is lost");
    return message;
}

std::string encode(const Message& message) {
    std::string fields;
    put(fields, static_cast<std::uint64_t>(message.kind), 1);
    put(fields, message.run_id, 8);
    put(fields, message.number, 8);
    put(fields, message.text);
    put(fields, message.parts.size(), 4);
    for (const std::string& part : message.parts)
        put(fields, part);
    if (fields.size() > max_message_bytes)
        throw std::runtime_error("a message of " + std::to_string(fields.size()) +
                                 " bytes is too long for the host's exchanges: send large data "
                                 "from device to device");
    std::string bytes;
    put(bytes, fields.size(), 4);
    return bytes + fields;
}

std::optional<Message> decode(std::string& bytes, std::size_t max_bytes) {
    if (bytes.size() < 4)
        return std::nullopt;
    const std::size_t size = number_at(bytes, 0, 4);
    if (size > max_bytes)
        throw_no_message();
    if (bytes.size() < 4 + size)
        return std::nullopt;
    const std::string fields = bytes.substr(4, size);
    bytes.erase(0, 4 + size);
    Reader reader(fields);
    Message message;
    const std::uint64_t kind = reader.number(1);
    if (kind > static_cast<std::uint64_t>(Message::last_kind))
        throw_no_message();
    message.kind = static_cast<Message::Kind>(kind);
    message.run_id = reader.number(8);
    message.number = reader.number(8);
    message.text = reader.text();
    for (std::uint64_t parts = reader.number(4); parts > 0; parts--)
        message.parts.push_back(reader.text());
    if (!reader.at_end())
        throw_no_message();
    return message;
}

}  // namespace ddp
