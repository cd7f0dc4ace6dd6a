#pragma once
// What the tests of stream capture share.
#include <cuda_runtime.h>

#include <cstddef>

#include "common/gpu/gpu.hpp"

namespace ddp::test {

inline cudaStreamCaptureStatus status_of(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    DDP_CHECK(cudaStreamIsCapturing(stream, &status));
    return status;
}

// What `enqueue` gives to the stream, captured and instantiated.
class CapturedGraph {
  public:
    template <class Enqueue>
    CapturedGraph(cudaStream_t stream, Enqueue enqueue,
                  cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
        DDP_CHECK(cudaStreamBeginCapture(stream, mode));
        enqueue();
        DDP_CHECK(cudaStreamEndCapture(stream, &graph_));
        DDP_CHECK(cudaGraphInstantiate(&instance_, graph_, 0));
    }
    ~CapturedGraph() {
        forget_graph();
        cudaGraphExecDestroy(instance_);
    }
    CapturedGraph(const CapturedGraph&) = delete;
    CapturedGraph& operator=(const CapturedGraph&) = delete;

    void launch(cudaStream_t stream) { DDP_CHECK(cudaGraphLaunch(instance_, stream)); }
    cudaGraphExec_t instance() const { return instance_; }
    void forget_graph() {
        if (graph_ != nullptr)
            cudaGraphDestroy(graph_);
        graph_ = nullptr;
    }
    std::size_t count_nodes() const {
        std::size_t count = 0;
        DDP_CHECK(cudaGraphGetNodes(graph_, nullptr, &count));
        return count;
    }

  private:
    cudaGraph_t graph_ = nullptr;
    cudaGraphExec_t instance_ = nullptr;
};

}  // namespace ddp::test
