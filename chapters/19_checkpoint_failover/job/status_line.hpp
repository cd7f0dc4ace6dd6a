#pragma once
// Status lines: the messages of a job's ranks to the supervisor that has started the job. They are
// lines of standard output, which every launcher passes on, from every node. So ranks and
// supervisor need to share neither a clock nor a folder.
#include <cstdint>
#include <optional>
#include <string>

namespace ddp {

// One message: "@ 2 step 120 0.4312".
struct StatusLine {
    int rank = 0;
    std::string what;  // "started", "resumed", "step", "saving", "saved", "done", "failed", ...
    std::int64_t step = 0;  // the rank's last step
    std::string value;      // what else belongs to it; may be empty

    // Returns the line, without its end.
    std::string line() const;
    // Returns the message that `line` holds, or nothing if it is no status line.
    static std::optional<StatusLine> from(const std::string& line);

    bool operator==(const StatusLine&) const = default;
};

// Prints the line in one piece, if this process has a supervisor.
void send_to_supervisor(const StatusLine& status);
bool has_supervisor();
// The environment variable that a supervisor sets for its job.
inline constexpr const char* supervised_variable = "DDP_SUPERVISED";

}  // namespace ddp
