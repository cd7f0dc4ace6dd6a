#pragma once
// A parameter server: rank 0 has the parameters, and ranks 1 to W compute gradients for it. A
// worker sends its gradient and receives the current parameters. It waits for the server, never
// for a different worker.
#include <functional>

#include "01_sgd/sgd.hpp"
#include "13_async/mailboxes.hpp"
#include "13_async/staleness_gate.hpp"
#include "13_async/support/server_log.hpp"
#include "common/report/bench.hpp"

namespace ddp {

// The two messages between server and workers, in memory of the peers. Every rank has them.
struct MessageBuffers {
    // For a model with `parameters` elements. `peers` and `device` must outlive this object.
    MessageBuffers(Peers& peers, Device& device, std::size_t parameters);

    Tensor to_worker;  // the values, and whether to do another step (1 or 0)
    Tensor to_server;  // the gradients, the loss, and the number of the step
    Tensor values;     // of all parameters: the beginning of to_worker
    Tensor gradients;  // the beginning of to_server
};

struct ServerOptions {
    int workers = 1;
    int gradients = 0;  // in all
    // true: wait for one gradient of every worker, and apply them in the order of the ranks.
    bool is_synchronous = false;
    // The number of steps that a worker may be ahead of the slowest; none: no limit.
    std::optional<int> bound;

    // Returns the bound of the gate.
    std::optional<int> lead() const { return is_synchronous ? 0 : bound; }
};

// The work of rank 0. Each gradient changes the parameters by -learning_rate times itself.
class Server {
  public:
    // `peers`, `device` and `buffers` must outlive this object. Construct it before any rank waits:
    // it allocates device memory.
    Server(Peers& peers, Device& device, MessageBuffers& buffers, double learning_rate,
           const ServerOptions& options);

    // Serves until options.gradients gradients are applied and every worker has been told to stop;
    // returns the log. Call it once. Throws as Peers::synchronize.
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
    std::shared_ptr<Parameter> all_;  // all parameters as one
    PlainSgd optimizer_;
    std::vector<int> read_;  // the version that each worker computes with, by worker
    Stopwatch watch_;
    ServerLog log_;
};

// The work of ranks 1 to W. Calls compute(0), compute(1), ... until the server needs no more, and
// returns the number of calls. compute(step) computes the gradient at buffers.values into
// buffers.gradients, by work in the device's stream, and returns the loss (one element). Throws as
// Peers::synchronize.
int run_worker(Peers& peers, Device& device, MessageBuffers& buffers,
               const std::function<Tensor(int step)>& compute);

}  // namespace ddp
