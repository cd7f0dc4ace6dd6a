#pragma once
// What the ranks of a job and their meeting say to each other, in one process or over TCP.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ddp {

struct Message {
    enum class Kind : std::uint8_t {
        hello,     // rank: I am here; parts: see rendezvous.cpp
        call,      // rank: I am in `text`, my call `number`; parts[0] is what I bring
        fail,      // rank: the run must end, because of `text`
        end,       // rank: my part of the run is over, because of `text` unless that is empty
        goodbye,   // rank: I will not take part in any further run
        welcome,   // meeting: all are here; parts: who they are
        refused,   // meeting: you do not belong here, because of `text`
        gathered,  // meeting: parts[r] is what rank r brought to the call
        failed,    // meeting: the run must end, because of `text`
        result,    // meeting: all have ended the run; see RunResult
        alive,     // both, every now and then
    };
    static constexpr Kind last_kind = Kind::alive;

    Kind kind = Kind::alive;
    std::uint64_t run_id = 0;  // of the run, from 1; 0, of a `fail`: of whatever run is on
    std::uint64_t number = 0;  // of the call, from 1
    std::string text;
    std::vector<std::string> parts;

    bool operator==(const Message&) const = default;
};

// The bytes of a message as they travel: their count (4 bytes, little-endian), then the fields.
std::string encode(const Message& message);

// The first whole message of `bytes`, which it is taken from; nothing if more bytes must come
// first. Throws std::runtime_error for what cannot be the beginning of a message.
std::optional<Message> decode(std::string& bytes);

// The longest text or part, and the longest message, that is taken for one.
inline constexpr std::size_t most_message_bytes = std::size_t{64} << 20;

}  // namespace ddp
