#include "graph.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "capture.hpp"
#include "runtime.hpp"

namespace cuda_on_cpu {

// The product of cudaGraphInstantiate. Two launches of it do not overlap.
struct Instance {
    std::shared_ptr<const Graph> graph;
    std::vector<cudaStream_t> lanes;  // of all lanes but the first
    std::mutex mutex;                 // one launch after the other
    std::shared_ptr<Stream> last_stream = nullptr;
    Stream::Ticket last_ticket = 0;
};

}  // namespace cuda_on_cpu

struct CUgraph_st {
    std::shared_ptr<const cuda_on_cpu::Graph> graph;
};
struct CUgraphExec_st {
    std::shared_ptr<cuda_on_cpu::Instance> instance;
};

namespace cuda_on_cpu {
namespace {

struct Handles {
    std::mutex mutex;
    std::set<cudaGraph_t> graphs;
    std::set<cudaGraphExec_t> instances;
};
Handles& handles() {
    static auto* instance = new Handles;
    return *instance;
}

cudaError_t unknown_graph(const char* call, const char* what) {
    return call_failed(cudaErrorInvalidValue, std::string(call) + " was given " + what +
                                                  " that was destroyed or never made");
}

std::shared_ptr<const Graph> find_graph(cudaGraph_t handle, const char* call) {
    std::lock_guard lock(handles().mutex);
    if (handles().graphs.contains(handle))
        return handle->graph;
    unknown_graph(call, "a graph");
    return nullptr;
}

std::shared_ptr<Instance> find_instance(cudaGraphExec_t handle, const char* call) {
    std::lock_guard lock(handles().mutex);
    if (handles().instances.contains(handle))
        return handle->instance;
    unknown_graph(call, "an instantiated graph");
    return nullptr;
}

// Commands of one lane that stand behind each other, as one command of the stream that runs it.
class RunSegment final : public Command {
  public:
    RunSegment(Stream& stream, std::shared_ptr<const Graph> graph, std::size_t begin,
               std::size_t end)
        : stream_(stream),
          graph_(std::move(graph)),
          lane_(graph_->entries[begin].lane),
          begin_(begin),
          end_(end) {
        for_each([&](const Command& command) {
            if (const PreparedKernel* kernel = command.cooperative_kernel())
                stream_.cooperative_kernel_begins(*kernel);
        });
    }
    ~RunSegment() override {
        for_each([&](const Command& command) {
            if (command.cooperative_kernel() != nullptr)
                stream_.cooperative_kernel_ends();
        });
    }
    void run(Stream& stream) override {
        for_each([&](Command& command) {
            if (!device_is_lost())
                command.run(stream);
        });
    }

  private:
    template <class Use>
    void for_each(Use use) const {
        for (std::size_t e = begin_; e < end_; e++)
            if (graph_->entries[e].lane == lane_)
                use(*graph_->entries[e].command);
    }
    Stream& stream_;
    std::shared_ptr<const Graph> graph_;
    std::size_t lane_, begin_, end_;  // the entries of the lane from begin to before end
};

// One launch: walks through the graph, and gives each lane's work to its stream.
class Launch {
  public:
    Launch(const std::shared_ptr<const Graph>& graph, std::vector<std::shared_ptr<Stream>> streams)
        : graph_(graph),
          streams_(std::move(streams)),
          first_open_(streams_.size(), none),
          tickets_(graph->entries.size()) {}

    void enqueue() {
        for (std::size_t e = 0; e < graph_->entries.size(); e++)
            enqueue(e);
        for (std::size_t lane = 0; lane < streams_.size(); lane++)
            close(lane, graph_->entries.size());
    }

  private:
    static constexpr std::size_t none = ~std::size_t{0};

    void enqueue(std::size_t e) {
        const Graph::Entry& entry = graph_->entries[e];
        switch (entry.kind) {
            case Graph::Entry::Kind::command:
                first_open_[entry.lane] = std::min(first_open_[entry.lane], e);
                break;
            case Graph::Entry::Kind::mark:
                close(entry.lane, e);
                tickets_[e] = streams_[entry.lane]->last_ticket();
                break;
            case Graph::Entry::Kind::wait:
                close(entry.lane, e);
                enqueue_wait(*streams_[entry.lane], streams_[graph_->entries[entry.mark].lane],
                             tickets_[entry.mark]);
                break;
        }
    }
    // Enqueues what the lane has had since its last mark or wait.
    void close(std::size_t lane, std::size_t end) {
        const std::size_t begin = std::exchange(first_open_[lane], none);
        if (begin == none)
            return;
        Stream& stream = *streams_[lane];
        stream.enqueue(
            [&](void* memory) { return new (memory) RunSegment(stream, graph_, begin, end); });
    }

    const std::shared_ptr<const Graph>& graph_;
    std::vector<std::shared_ptr<Stream>> streams_;  // by lane
    std::vector<std::size_t> first_open_;           // by lane: the first command not enqueued yet
    std::vector<Stream::Ticket> tickets_;           // of the marks: what stands before them
};

}  // namespace

std::size_t Graph::count_commands() const {
    return static_cast<std::size_t>(
        std::ranges::count(entries, Entry::Kind::command, &Entry::kind));
}

cudaGraph_t make_graph_handle(std::shared_ptr<const Graph> graph) {
    auto* handle = new CUgraph_st{std::move(graph)};
    std::lock_guard lock(handles().mutex);
    handles().graphs.insert(handle);
    return handle;
}

std::string graph_leak_report() {
    std::lock_guard lock(handles().mutex);
    const auto line = [](const char* what, std::size_t count) {
        return count == 0 ? ""
                          : "cuda_on_cpu: never destroyed: " + std::string(what) + ", " +
                                std::to_string(count) + "\n";
    };
    return line("graphs of cudaStreamEndCapture", handles().graphs.size()) +
           line("graphs of cudaGraphInstantiate", handles().instances.size());
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, std::size_t* count) {
    const auto graph = find_graph(handle, "cudaGraphGetNodes");
    if (!graph)
        return cudaErrorInvalidValue;
    if (nodes != nullptr)
        return call_failed(cudaErrorInvalidValue,
                           "cudaGraphGetNodes: CUDA on a CPU only counts the nodes: pass nullptr "
                           "for the nodes themselves");
    *count = graph->count_commands();
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* instance, cudaGraph_t handle,
                                 unsigned long long) {
    constexpr const char* call = "cudaGraphInstantiate";
    if (const cudaError_t status = enter_call(call))
        return status;
    if (const cudaError_t error = check_safe(call))
        return error;
    if (const cudaError_t error = check_no_kernel_waits(call, "allocates device memory"))
        return error;
    const auto graph = find_graph(handle, call);
    if (!graph)
        return cudaErrorInvalidValue;
    wait_inside_driver();
    auto made = std::make_shared<Instance>();
    made->graph = graph;
    for (std::size_t lane = 1; lane < graph->devices.size(); lane++)
        made->lanes.push_back(make_stream(graph->devices[lane], false));
    auto* result = new CUgraphExec_st{std::move(made)};
    std::lock_guard lock(handles().mutex);
    handles().instances.insert(result);
    *instance = result;
    return cudaSuccess;
}

// A CPU has nothing to move: the graph's commands are the host's.
cudaError_t cudaGraphUpload(cudaGraphExec_t handle, cudaStream_t stream_handle) {
    constexpr const char* call = "cudaGraphUpload";
    if (const cudaError_t status = enter_call(call))
        return status;
    if (const cudaError_t error = check_no_kernel_waits(call, "allocates device memory"))
        return error;
    if (!find_instance(handle, call))
        return cudaErrorInvalidValue;
    return find_stream(stream_handle, call) ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream_handle) {
    constexpr const char* call = "cudaGraphLaunch";
    if (const cudaError_t status = enter_call(call))
        return status;
    const auto instance = find_instance(handle, call);
    if (!instance)
        return cudaErrorInvalidValue;
    const auto stream = find_stream(stream_handle, call);
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error =
            refuse_if_captured(*stream, call, "and a graph within a graph is not in the subset"))
        return error;
    if (const cudaError_t error = begin_work(*stream, call))
        return error;
    std::lock_guard lock(instance->mutex);
    if (instance->last_stream)
        enqueue_wait(*stream, instance->last_stream, instance->last_ticket);
    std::vector<std::shared_ptr<Stream>> streams{stream};
    for (cudaStream_t lane : instance->lanes)
        streams.push_back(lane->stream);
    Launch(instance->graph, std::move(streams)).enqueue();
    instance->last_stream = stream;
    instance->last_ticket = stream->last_ticket();
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle) {
    constexpr const char* call = "cudaGraphExecDestroy";
    if (const cudaError_t error = check_caller(call))
        return error;
    if (!find_instance(handle, call))
        return cudaErrorInvalidValue;
    std::lock_guard lock(handles().mutex);
    for (cudaStream_t lane : handle->instance->lanes)
        leave_stream(lane);
    handles().instances.erase(handle);
    delete handle;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
    if (!find_graph(handle, "cudaGraphDestroy"))
        return cudaErrorInvalidValue;
    std::lock_guard lock(handles().mutex);
    handles().graphs.erase(handle);
    delete handle;
    return cudaSuccess;
}
