#pragma once
// Does this machine keep up with a simulated link?
#include <string>

namespace ddp {

// Watches the measurements of a run over a simulated link. Ranks that wait for a core are later
// than the link, and then the measurement is one of the machine.
class Pace {
  public:
    void add(double measured_s, double predicted_s, int ranks);
    // Prints a sentence on stderr, with the ranks, the cores and the load average, if a measurement
    // was more than a quarter above its prediction.
    void warn() const;

  private:
    double worst_ = 1;  // measured / predicted
    int ranks_ = 1;     // of that measurement
};

// Returns the warning; empty if `worst`, the largest measured / predicted, is 1.25 or less.
std::string pace_warning(double worst, int ranks, int cores, double load_average);

}  // namespace ddp
