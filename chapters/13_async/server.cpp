// The server and one of its workers:
//
//     server (rank 0)                                worker (rank r)
//     1 wait for a message in any mailbox            1 receive parameters and "go on" or "stop"
//     2 receive that worker's gradient               2 compute a gradient with these parameters
//     3 apply it: one step of the optimizer          3 send gradient, loss and step number
//     4 let workers through the gate
//     5 send these the parameters as they are now
//
// Asynchronous, bounded and synchronous servers are this one. They differ in the bound of the gate
// (none, s, 0), and a synchronous one takes the gradients by rank in 1.
#include "13_async/server.hpp"

#include <algorithm>
#include <stdexcept>

namespace ddp {
namespace {

constexpr int server = 0;

void copy(const Tensor& to, const Tensor& from) {
    DDP_CHECK(cudaMemcpyAsync(to.data(), from.data(), from.bytes(), cudaMemcpyDeviceToDevice,
                              to.device().stream()));
}

// Returns all parameters as one, whose gradient is the message of a worker: no copy is needed.
std::shared_ptr<Parameter> as_one(const MessageBuffers& buffers) {
    const auto all = std::make_shared<Parameter>("all", buffers.values);
    all->place_gradient(buffers.gradients);
    return all;
}

// Returns the options. Throws std::invalid_argument if they contradict each other.
const ServerOptions& checked(const ServerOptions& options) {
    if (options.is_synchronous && options.bound.value_or(0) != 0)
        throw std::invalid_argument("a synchronous server has no bound but 0");
    if (options.is_synchronous && options.gradients % std::max(options.workers, 1) != 0)
        throw std::invalid_argument(std::to_string(options.gradients) +
                                    " gradients are no whole number of steps of " +
                                    std::to_string(options.workers) + " workers");
    return options;
}

// Returns a tensor of `size` elements in memory that other ranks' kernels can reach.
Tensor in_arena(Peers& peers, Device& device, std::size_t size) {
    return {device, {static_cast<int>(size)}, peers.allocate<float>(size).share()};
}

}  // namespace

// ---- MessageBuffers

MessageBuffers::MessageBuffers(Peers& peers, Device& device, std::size_t parameters)
    : to_worker_(in_arena(peers, device, parameters + 1)),
      to_server_(in_arena(peers, device, parameters + 2)) {
    // Both tensors are the beginning of their message, so messages are sent without a copy.
    const Shape shape{static_cast<int>(parameters)};
    values = to_worker_.view(0, shape);
    gradients = to_server_.view(0, shape);
}

void move_to(const std::vector<std::shared_ptr<Parameter>>& parameters, const Tensor& values,
             const Tensor& gradients) {
    // Side by side, one message carries all parameters, and one all their gradients.
    std::size_t first = 0;
    for (const auto& parameter : parameters) {
        const Tensor place = values.view(first, parameter->value.shape());
        copy(place, parameter->value);
        parameter->value = place;
        parameter->place_gradient(gradients.view(first, place.shape()));
        first += place.size();
    }
}

// ---- ServerLog

double ServerLog::mean_staleness() const {
    double sum = 0;
    for (const Applied& each : applied)
        sum += each.staleness();
    return applied.empty() ? 0 : sum / static_cast<double>(applied.size());
}

int ServerLog::max_staleness() const {
    int most = 0;
    for (const Applied& each : applied)
        most = std::max(most, each.staleness());
    return most;
}

// ---- Server

Server::Server(Peers& peers, Device& device, MessageBuffers& buffers, double learning_rate,
               const ServerOptions& options)
    : peers_(peers),
      buffers_(buffers),
      stream_(device.stream()),
      options_(checked(options)),
      mailboxes_(peers, options.workers),
      gate_(options.workers, options.lead(), options.gradients),
      all_(as_one(buffers)),
      optimizer_({all_}, learning_rate),
      read_(static_cast<std::size_t>(options.workers)) {}

ServerLog Server::serve() {
    watch_.restart();
    answer();  // all workers are at the gate: the first message asks for the first gradient
    while (std::ssize(log_.applied) < options_.gradients) {
        apply_next();
        answer();
    }
    peers_.synchronize(stream_);
    log_.max_ahead = gate_.max_ahead();
    log_.seconds = watch_.seconds();
    return log_;
}

// Returns the number of updates so far. Synchronously an update is complete when the gradients of
// all workers are in it.
int Server::version() const {
    const int applied = static_cast<int>(log_.applied.size());
    return options_.is_synchronous ? applied / options_.workers : applied;
}

void Server::apply_next() {
    // 1. Which worker? Synchronous servers take gradients by rank, so that sums have the same bits
    // in every run. That costs no time: no worker is answered before all gradients are there.
    const int worker = options_.is_synchronous
                           ? 1 + static_cast<int>(log_.applied.size()) % options_.workers
                           : mailboxes_.wait(stream_);
    // 2. Receive the gradient, to where the optimizer reads it.
    const Tensor& message = buffers_.to_server_;
    peers_.receive(message.data(), message.size(), worker, stream_, "gradient");
    all_->gradient_for_writing();  // marks it as present
    // 3. Apply it.
    optimizer_.step();
    peers_.synchronize(stream_);
    // The loss and the worker's step number stand behind the gradient.
    const std::vector<float> more = message.view(buffers_.gradients.size(), {2}).to_host();
    log_.applied.push_back({worker, static_cast<int>(more[1]),
                            read_[static_cast<std::size_t>(worker) - 1], version(), more[0],
                            watch_.seconds()});
    // The worker has finished a step. It waits for an answer, which the gate may hold back.
    gate_.arrive(worker);
}

void Server::answer() {
    const Tensor& message = buffers_.to_worker_;
    // One message for all: `values` is what the optimizer changes, go_on stands behind it.
    Tensor go_on = message.view(buffers_.values.size(), {1});
    // 4. Let workers through the gate.
    for (const StalenessGate::Pass& pass : gate_.let_through()) {
        // 5. Send the parameters as they are now, and remember which version that was.
        fill(go_on, pass.goes_on ? 1.0f : 0.0f);
        peers_.send(message.data(), message.size(), pass.worker, stream_, "parameters");
        read_[static_cast<std::size_t>(pass.worker) - 1] = version();
    }
}

// ---- Worker

int run_worker(Peers& peers, Device& device, MessageBuffers& buffers,
               const std::function<Tensor(int step)>& compute) {
    Stream& stream = device.stream();
    const std::size_t parameters = buffers.values.size();
    const Tensor go_on = buffers.to_worker_.view(parameters, {1});
    // Views of the messages: what the server sends arrives here, and what it gets is written here.
    const Tensor loss = buffers.to_server_.view(parameters, {1});
    Tensor number = buffers.to_server_.view(parameters + 1, {1});
    for (int step = 0;; step++) {
        // 1. Receive the parameters, or the end.
        peers.receive(buffers.to_worker_.data(), buffers.to_worker_.size(), server, stream,
                      "parameters");
        peers.synchronize(stream);
        if (go_on.to_host()[0] == 0)
            return step;
        // 2. Compute. The gradient is then in the message already.
        copy(loss, compute(step));
        fill(number, static_cast<float>(step));
        // 3. Send, and wait for no other worker.
        peers.send(buffers.to_server_.data(), buffers.to_server_.size(), server, stream,
                   "gradient");
    }
}

}  // namespace ddp
