#include "19_checkpoint_failover/job/status_line.hpp"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

namespace ddp {

std::string StatusLine::line() const {
    return "@ " + std::to_string(rank) + " " + what + " " + std::to_string(step) +
           (value.empty() ? "" : " " + value);
}

std::optional<StatusLine> StatusLine::from(const std::string& line) {
    std::istringstream words(line);
    std::string sign;
    StatusLine status;
    if (!(words >> sign >> status.rank >> status.what >> status.step) || sign != "@")
        return std::nullopt;
    std::getline(words >> std::ws, status.value);
    return status;
}

bool has_supervisor() {
    return std::getenv(supervised_variable) != nullptr;
}

void send_to_supervisor(const StatusLine& status) {
    if (!has_supervisor())
        return;
    // A single write: lines of several ranks do not mix.
    const std::string line = status.line() + "\n";
    [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, line.data(), line.size());
}

}  // namespace ddp
