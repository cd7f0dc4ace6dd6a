#include "07_broadcast/show/pace.hpp"

#include <cstdlib>

#include <iostream>

#include "05_ranks/cores.hpp"
#include "common/report/units.hpp"

namespace ddp {

void Pace::add(double measured_s, double predicted_s, int ranks) {
    if (measured_s / predicted_s <= worst_)
        return;
    worst_ = measured_s / predicted_s;
    ranks_ = ranks;
}

void Pace::warn() const {
    double load_average = 0;  // over the last minute
    if (getloadavg(&load_average, 1) != 1)
        load_average = 0;
    const std::string warning = pace_warning(worst_, ranks_, usable_cores(), load_average);
    if (!warning.empty())
        std::cerr << warning << std::endl;
}

std::string pace_warning(double worst, int ranks, int cores, double load_average) {
    if (worst <= 1.25)
        return "";
    std::string text = "This machine does not keep up with the simulated link: a measurement is " +
                       format_percent(worst - 1) + " above its prediction. ";
    if (ranks > cores)
        text += std::to_string(ranks) + " ranks share " + format_count(cores, "core") + ". ";
    if (load_average > cores + ranks)
        text += "The machine is busy with other work (load average " +
                format_fixed(load_average, 1) + "). ";
    return text + "Run it again on an idle machine, with fewer ranks or over a slower --link.";
}

}  // namespace ddp
