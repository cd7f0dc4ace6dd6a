#pragma once
// The messages between the ranks of a job and its coordinator, within one process or over TCP.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ddp {

struct Message {
    enum class Kind : std::uint8_t {
        // From a rank to the coordinator
        hello,    // I am here; parts: see rendezvous.cpp
        call,     // I am in `text`, my call `number`; parts[0] is my contribution
        fail,     // the run must end, because of `text`
        end,      // I have ended this run, because of `text` unless that is empty; parts[0]: how I
                  // waited for rank `number`, if I did
        goodbye,  // I take part in no further run (the coordinator's process sends this too)
        // From the coordinator to a rank
        welcome,   // all ranks are here; parts: their nodes and processes
        refused,   // you do not belong here, because of `text`; never if `number` is not 0
        gathered,  // your call is over; parts[r] is the contribution of rank r
        failed,    // the run must end, because of `text`
        result,    // all ranks have ended the run; see RunResult
        // In both directions
        alive,  // the heartbeat
    };
    static constexpr Kind last_kind = Kind::alive;

    Kind kind = Kind::alive;
    std::uint64_t run_id =
        0;  // counts runs from 1; 0 in a `fail`: the current run, whichever it is
    std::uint64_t number = 0;  // counts a rank's calls in a run from 1
    std::string text;
    std::vector<std::string> parts;

    bool operator==(const Message&) const = default;
};

// Returns "barrier (call 3)", for example.
std::string describe_call(const Message& call);

// The end of a run, the same on every rank.
struct RunResult {
    std::string cause;     // empty: no rank has failed
    int reporter = 0;      // the lowest rank that is left: it prints the cause
    bool is_last = false;  // a rank is lost: no further run is possible

    static RunResult from(const Message& message);
    Message to_message(std::uint64_t run_id) const;
};

// Returns the bytes of a message as they travel: their count (4 bytes, little-endian), then the
// fields. Throws std::runtime_error if they are more than max_message_bytes.
std::string encode(const Message& message);

// The largest size of a message that is sent or accepted, ...
inline constexpr std::size_t max_message_bytes = std::size_t{64} << 20;
// ... and of the first one, from a process that may be no rank at all.
inline constexpr std::size_t max_hello_bytes = 4096;

// Removes the first whole message from the beginning of `bytes` and returns it; returns nothing
// while bytes of it are missing. Throws std::runtime_error if no message of at most `max_bytes`
// begins like this.
std::optional<Message> decode(std::string& bytes, std::size_t max_bytes = max_message_bytes);

}  // namespace ddp
