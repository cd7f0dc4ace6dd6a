#pragma once
// A parameter server: rank 0 has the parameters, and ranks 1 to W compute gradients for it. A
// worker sends its gradient and receives the current parameters. It waits for the server, never
// for a different worker.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "01_sgd/sgd.hpp"
#include "13_async/mailboxes.hpp"
#include "13_async/staleness_gate.hpp"
#include "common/report/bench.hpp"

namespace ddp {

// The two messages between server and workers, in memory of the peers. Every rank has them.
class MessageBuffers {
  public:
    // For a model with `parameters` elements. `peers` and `device` must outlive this object.
    MessageBuffers(Peers& peers, Device& device, std::size_t parameters);

    Tensor values;     // [parameters], the first elements of the message to a worker
    Tensor gradients;  // [parameters], the first elements of the message to the server

  private:
    friend class Server;
    friend int run_worker(Peers&, Device&, MessageBuffers&, const std::function<Tensor(int)>&);

    Tensor to_worker_;  // [parameters + 1]: values, and whether to do another step (1 or 0)
    Tensor to_server_;  // [parameters + 2]: gradients, the loss, and the number of the step
};

// Moves the parameters into `values`, one after the other, and their gradients into `gradients`,
// where both then live. The parameters keep their numbers. Only enqueues.
void move_to(const std::vector<std::shared_ptr<Parameter>>& parameters, const Tensor& values,
             const Tensor& gradients);

struct ServerOptions {
    int workers = 1;
    int gradients = 0;  // in all
    // true: wait for one gradient of every worker, and apply them in the order of the ranks.
    // `gradients` must then be a multiple of `workers`, and `bound` 0 or none.
    bool is_synchronous = false;
    // The number of steps that a worker may be ahead of the slowest; none: no limit.
    std::optional<int> bound;

    // Returns the number of steps by which the gate lets a worker lead; none: no limit.
    std::optional<int> lead() const { return is_synchronous ? 0 : bound; }
};

// One gradient that the server has applied. The version of the parameters is the number of updates
// so far. An update is one gradient or, synchronously, one gradient of every worker.
struct Applied {
    int worker = 0;
    int step = 0;        // the worker's own number, from 0
    int read = 0;        // the version that the gradient was computed with
    int applied_to = 0;  // the version that it has changed
    double loss = 0;     // of the worker's samples
    double seconds = 0;  // since the beginning

    // Returns the updates between the parameters it was computed with and those it was applied to.
    int staleness() const { return applied_to - read; }
};

struct ServerLog {
    std::vector<Applied> applied;
    int max_ahead = 0;  // the largest lead of any worker over the slowest, in steps
    double seconds = 0;

    // Returns the number of versions that the parameters have had after the first.
    int updates() const { return applied.empty() ? 0 : applied.back().applied_to + 1; }
    // Return the mean and the largest staleness of all gradients, in updates; 0 if there are none.
    double mean_staleness() const;
    int max_staleness() const;
};

// The work of rank 0. Each gradient changes the parameters by -learning_rate times itself.
class Server {
  public:
    // `peers`, `device` and `buffers` must outlive this object. Construct it before any rank waits:
    // it allocates device memory. Throws std::invalid_argument if the options contradict each
    // other.
    Server(Peers& peers, Device& device, MessageBuffers& buffers, double learning_rate,
           const ServerOptions& options);

    // Serves until options.gradients gradients are applied and the end has been sent to every
    // worker; returns the log. Call it once. Throws as Peers::synchronize.
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
