#pragma once
// The rules that the log of a server keeps, whatever the order of the run. The experiment checks
// them after each run: a gradient that is lost, or applied twice, would otherwise look like noise.
#include <string>

#include "13_async/server.hpp"

namespace ddp {

// Checks a log against the rules of such a server: every gradient is applied once, in its worker's
// order, as many as were asked for, and neither lead nor staleness exceed the bound. Returns "" or
// the first rule that is broken.
std::string what_is_wrong(const ServerLog& log, const ServerOptions& options);

}  // namespace ddp
