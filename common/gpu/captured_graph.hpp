#pragma once
// Captured streams: what the host enqueues on one is noted and not run, and becomes a graph, each
// launch of which runs all of it. (CUDA Programming Guide, "CUDA Graphs".)
#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "common/gpu/stream.hpp"

namespace ddp {

inline cudaStreamCaptureStatus capture_status(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    DDP_CHECK(cudaStreamIsCapturing(stream, &status));
    return status;
}
inline bool is_captured(cudaStream_t stream) {
    return capture_status(stream) != cudaStreamCaptureStatusNone;
}

class CapturedGraph {
  public:
    // Captures what enqueue() enqueues on `stream`, and on streams that wait for it and for which
    // it waits in the end. By the usual mode other threads may allocate and capture meanwhile.
    template <class Enqueue>
    CapturedGraph(cudaStream_t stream, Enqueue enqueue,
                  cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
        DDP_CHECK(cudaStreamBeginCapture(stream, mode));
        cudaGraph_t graph = nullptr;
        try {
            enqueue();
        } catch (...) {
            cudaStreamEndCapture(stream, &graph);  // fails as well, if the capture has failed
            if (graph != nullptr)
                cudaGraphDestroy(graph);
            throw;
        }
        DDP_CHECK(cudaStreamEndCapture(stream, &graph));
        cudaError_t status = cudaGraphGetNodes(graph, nullptr, &nodes_);
        if (status == cudaSuccess)
            status = cudaGraphInstantiate(&instance_, graph, 0);
        cudaGraphDestroy(graph);
        check(status, "cudaGraphInstantiate");
    }
    // Does not wait for launches that are under way.
    ~CapturedGraph() { cudaGraphExecDestroy(instance_); }
    CapturedGraph(const CapturedGraph&) = delete;
    CapturedGraph& operator=(const CapturedGraph&) = delete;

    // Brings the graph to the device, as its first launch would. To allocate memory there may wait
    // for kernels that run.
    void upload(cudaStream_t stream) { DDP_CHECK(cudaGraphUpload(instance_, stream)); }
    void launch(cudaStream_t stream) { DDP_CHECK(cudaGraphLaunch(instance_, stream)); }
    cudaGraphExec_t instance() const { return instance_; }
    // Returns how many kernels, copies and fills were captured.
    std::size_t nodes() const { return nodes_; }

  private:
    cudaGraphExec_t instance_ = nullptr;
    std::size_t nodes_ = 0;
};

}  // namespace ddp
