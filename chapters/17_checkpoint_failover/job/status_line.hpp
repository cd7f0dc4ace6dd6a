#pragma once
// What the ranks of a job tell whoever has started it: lines of their standard output, which every
// launcher passes on, from every host. No clock and no folder need to be shared.
#include <cstdint>
#include <optional>
#include <string>

namespace ddp {

// "@ 2 step 120 0.4312"
struct Report {
    int rank = 0;
    std::string what;
    std::int64_t step = 0;
    std::string value;  // "" for none

    std::string line() const;
    // Nothing for a line that is none.
    static std::optional<Report> from(const std::string& line);

    bool operator==(const Report&) const = default;
};

// Prints the line, in one piece, if this process has a supervisor.
void tell_supervisor(const Report& report);
bool has_supervisor();
// In the environment of who has one.
inline constexpr const char* supervised_variable = "DDP_SUPERVISED";

}  // namespace ddp
