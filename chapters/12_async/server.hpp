#pragma once
// A parameter server: rank 0 has the parameters, and ranks 1 to W compute gradients for it. A
// worker sends its gradient and gets the parameters as they are then; it waits for nobody but the
// server.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "01_sgd/sgd.hpp"
#include "12_async/mailboxes.hpp"
#include "12_async/staleness_gate.hpp"
#include "common/report/bench.hpp"

namespace ddp {

// What goes to and fro, in memory of the peers: each rank has one.
class MessageBuffers {
  public:
    MessageBuffers(Peers& peers, Device& device, std::size_t parameters);

    Tensor values;     // [parameters]
    Tensor gradients;  // the same

  private:
    friend class Server;
    friend int work(Peers&, Device&, MessageBuffers&, const std::function<Tensor(int)>&);

    Tensor order_;   // values, and behind them whether to do another step (1 or 0)
    Tensor report_;  // gradients, and behind them the loss and the step's number
};

// The parameters and their gradients live here from now on, one behind the other; the values keep
// their numbers.
void move_to(const std::vector<std::shared_ptr<Parameter>>& parameters, const Tensor& values,
             const Tensor& gradients);

struct ServerOptions {
    int workers = 1;
    int gradients = 0;  // in all
    // All workers' gradients of a step are waited for, and applied by rank: a bound of 0 and an
    // order. `gradients` is then a multiple of `workers`.
    bool is_synchronous = false;
    // How many steps a worker may be ahead of the slowest one; none: as many as it likes.
    std::optional<int> bound;
};

// One gradient that the server has applied. Versions of the parameters are counted in updates: by
// one gradient each, or, synchronously, by those of all workers.
struct Applied {
    int worker = 0;
    int step = 0;        // the worker's own, from 0
    int read = 0;        // the version that it was computed with
    int applied_to = 0;  // ... and the one that it has changed
    double loss = 0;     // of the worker's samples
    double seconds = 0;  // since the beginning

    int staleness() const { return applied_to - read; }
};

struct ServerLog {
    std::vector<Applied> applied;
    int most_ahead = 0;  // steps, of any worker before the slowest
    double seconds = 0;

    int updates() const { return applied.empty() ? 0 : applied.back().applied_to + 1; }
    double mean_staleness() const;
    int most_staleness() const;
};

// Rank 0's part. Each gradient changes the parameters by -learning_rate times itself.
class Server {
  public:
    // All must live longer. To be made before anybody waits: it asks the device for memory. Throws
    // std::invalid_argument for options that contradict each other.
    Server(Peers& peers, Device& device, MessageBuffers& buffers, double learning_rate,
           const ServerOptions& options);

    // Until options.gradients gradients are applied, and all workers know. To be called once.
    ServerLog serve();

  private:
    void apply_next();
    void answer();
    int version() const;

    Peers& peers_;
    MessageBuffers& buffers_;
    Stream& stream_;
    const ServerOptions options_;
    Mailboxes mailboxes_;
    StalenessGate gate_;
    std::shared_ptr<Parameter> all_;  // parameters, as one
    PlainSgd optimizer_;
    std::vector<int> read_;  // the version that each worker computes with
    Stopwatch watch_;
    ServerLog log_;
};

// The part of ranks 1 to W: calls compute(0), compute(1), ... until the server has enough. It is to
// leave the gradient at letters.values in letters.gradients, by work on the device's stream, and to
// return the loss (one element). Returns how often it was called.
int work(Peers& peers, Device& device, MessageBuffers& buffers,
         const std::function<Tensor(int step)>& compute);

// "" if the log is what such a server may have done: every gradient once, in its worker's order, as
// many as were asked for, and neither lead nor staleness beyond the bound. Otherwise what is wrong.
std::string what_is_wrong(const ServerLog& log, const ServerOptions& options);

}  // namespace ddp
