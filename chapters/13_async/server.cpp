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

namespace ddp {
namespace {

constexpr int server = 0;

// Returns a tensor of `size` elements in memory that other ranks' kernels can reach.
Tensor in_arena(Peers& peers, Device& device, std::size_t size) {
    return {device, {static_cast<int>(size)}, peers.allocate<float>(size).share()};
}

// Returns all parameters as one, whose gradient is the message of a worker: no copy is needed.
std::shared_ptr<Parameter> as_one(const MessageBuffers& buffers) {
    const auto all = std::make_shared<Parameter>("all", buffers.values);
    all->place_gradient(buffers.gradients);
    return all;
}

}  // namespace

MessageBuffers::MessageBuffers(Peers& peers, Device& device, std::size_t parameters)
    : to_worker(in_arena(peers, device, parameters + 1)),
      to_server(in_arena(peers, device, parameters + 2)),
      values(to_worker.view(0, {static_cast<int>(parameters)})),
      gradients(to_server.view(0, values.shape())) {}

// ---- Server

Server::Server(Peers& peers, Device& device, MessageBuffers& buffers, double learning_rate,
               const ServerOptions& options)
    : peers_(peers),
      buffers_(buffers),
      stream_(device.stream()),
      options_(options),
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
    const Tensor& message = buffers_.to_server;
    peers_.receive(message.data(), message.size(), worker, stream_, "gradient");
    all_->gradient_for_writing();  // marks it as present
    // 3. Apply it.
    optimizer_.step();
    peers_.synchronize(stream_);
    // After the gradient, the message has the loss and the worker's step number.
    const std::vector<float> more = message.view(buffers_.gradients.size(), {2}).to_host();
    log_.applied.push_back({worker, static_cast<int>(more[1]),
                            read_[static_cast<std::size_t>(worker) - 1], version(), more[0],
                            watch_.seconds()});
    // The worker has finished a step. It waits for an answer, which the gate may hold back.
    gate_.arrive(worker);
}

void Server::answer() {
    const Tensor& message = buffers_.to_worker;
    // One message for all: the optimizer changes its values, and go_on comes after them.
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
    const Tensor& received = buffers.to_worker;
    const Tensor& sent = buffers.to_server;
    for (int step = 0;; step++) {
        // 1. Receive the parameters, or the end.
        peers.receive(received.data(), received.size(), server, stream, "parameters");
        peers.synchronize(stream);
        const bool goes_on = received.view(parameters, {1}).to_host()[0] != 0;
        if (!goes_on)
            return step;
        // 2. Compute. The gradient is then in the message already; loss and step number follow it.
        const Tensor loss = compute(step);
        DDP_CHECK(cudaMemcpyAsync(sent.data() + parameters, loss.data(), loss.bytes(),
                                  cudaMemcpyDeviceToDevice, stream));
        Tensor number = sent.view(parameters + 1, {1});
        fill(number, static_cast<float>(step));
        // 3. Send, and wait for no other worker.
        peers.send(sent.data(), sent.size(), server, stream, "gradient");
    }
}

}  // namespace ddp
