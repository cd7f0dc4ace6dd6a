#include "19_checkpoint_failover/job/faults.hpp"

#include <algorithm>
#include <csignal>

namespace ddp {
namespace {

bool is_due(const Fault& fault, const Attempt& attempt) {
    if (fault.kind != Fault::Kind::kill_while_saving)
        return attempt.last_step() >= fault.step;
    if (attempt.status_lines.empty())
        return false;
    const StatusLine& last = attempt.status_lines.back().status;
    return last.what == "saving" && last.step >= fault.step;
}

}  // namespace

std::string Fault::text() const {
    std::string victim = (count == 1 ? "rank " : "ranks ") + std::to_string(rank);
    for (int i = 1; i < count; i++)
        victim += (i + 1 < count ? ", " : " and ") + std::to_string(rank + i);
    switch (kind) {
        case Kind::kill:
            return "kill -9 of " + victim;
        case Kind::kill_while_saving:
            return "kill -9 of " + victim + ", saving";
        default:
            return "SIGSTOP of " + victim;
    }
}

void Faults::watch(SupervisedProcess&, const Attempt& attempt, double now_s) {
    if (next_ == static_cast<int>(faults_.size()) || attempt.begin_s == attempt_s_)
        return;
    Fault& fault = faults_[static_cast<std::size_t>(next_)];
    std::vector<pid_t> victims;
    for (int i = 0; i < fault.count; i++)
        victims.push_back(attempt.process_of(fault.rank + i));
    if (std::ranges::count(victims, 0) > 0 || !is_due(fault, attempt))
        return;
    for (const pid_t process : victims)
        kill(process, fault.kind == Fault::Kind::stop ? SIGSTOP : SIGKILL);
    fault.time_s = now_s;
    fault.at_step = attempt.last_step();
    attempt_s_ = attempt.begin_s;
    next_++;
}

}  // namespace ddp
