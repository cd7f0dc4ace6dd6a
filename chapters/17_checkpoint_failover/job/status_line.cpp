#include "17_checkpoint_failover/job/status_line.hpp"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

namespace ddp {

std::string Report::line() const {
    return "@ " + std::to_string(rank) + " " + what + " " + std::to_string(step) +
           (value.empty() ? "" : " " + value);
}

std::optional<Report> Report::from(const std::string& line) {
    std::istringstream words(line);
    std::string sign;
    Report report;
    if (!(words >> sign >> report.rank >> report.what >> report.step) || sign != "@")
        return std::nullopt;
    std::getline(words >> std::ws, report.value);
    return report;
}

bool has_supervisor() {
    return std::getenv(supervised_variable) != nullptr;
}

void tell_supervisor(const Report& report) {
    if (!has_supervisor())
        return;
    const std::string line = report.line() + "\n";
    [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, line.data(), line.size());
}

}  // namespace ddp
