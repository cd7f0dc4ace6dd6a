#pragma once
// The one runtime of a process: which streams and events exist, which device a thread uses, what
// happens at exit.
#include <atomic>
#include <memory>
#include <string>

#include "cuda_on_cpu/runtime_api.hpp"
#include "errors.hpp"
#include "stream.hpp"

namespace cuda_on_cpu {

// The cores of this machine, or the multiprocessors of the small GPU that it plays.
int processors();

// Copies a launch that was found to be right into the stream's queue, as enqueue_kernel says.
void queue_kernel(Stream& stream, PreparedKernel& kernel, std::size_t bytes,
                  PreparedKernel* (*move_to)(void* address, PreparedKernel& kernel));

// Refuses what is called from a host function, where CUDA allows no call of its own.
cudaError_t check_caller(const char* call);
// Begins every call: starts the runtime at the process's first call (fault handlers, the report at
// exit), refuses calls from a host function, and reports a lost device.
cudaError_t enter_call(const char* call);

// Refuses, in strict mode, a call that on a GPU may wait for every kernel of the device
// (allocating, freeing, cuBLAS's handles) while a cooperative kernel is in flight: one that waits
// for a peer would wait forever. `what` says more of the call, `advice` what to do instead.
cudaError_t check_no_kernel_waits(const std::string& caller, const std::string& what,
                                  const std::string& advice = "allocate before, free after");
// Refuses, on a played GPU, what is the first command of a stream while another kernel may wait. On
// an H100 a kernel stood behind what another new stream had to do after its kernel that waited. An
// event did not: 40 times of 40 on an H200.
cudaError_t check_stream_is_used(const Stream& stream, const char* call);
// Plays, with the setting `waits`, a driver that waits in this call for all that is in flight, and
// keeps the other threads of the process out meanwhile. No document says that making a stream waits
// for a kernel that runs: beside a cooperative one, which may wait for a peer, it goes on.
enum class BesideCooperative { waits, goes_on };
void wait_inside_driver(BesideCooperative beside = BesideCooperative::waits);
// Returns whether kernels of `device` may use the memory of device `peer`.
bool has_peer_access(int device, int peer);
// Returns whether this CPU plays a GPU that loads a kernel at its first use, which may wait for
// all kernels that run: in strict mode, with CUDA_ON_CPU=multiprocessors=N.
bool plays_loading();

// Handles of cublasCreate that were not destroyed yet.
inline std::atomic<int> live_blas_handles{0};

// The stream of a handle (nullptr: the current device's default stream), or nullptr for one that
// was destroyed or never made: then the failure is already recorded.
std::shared_ptr<Stream> find_stream(cudaStream_t handle, const char* call);

// Where a command of this stream comes in: the default stream waits for all blocking streams of its
// device, and they for it, as CUDA's legacy default stream does.
void order_with_default_stream(Stream& stream);

// Makes a stream, and lets one go, which finishes its work.
cudaStream_t make_stream(int device, bool blocking);
void leave_stream(cudaStream_t handle);
// Returns whether it is the default stream of its device.
bool is_default_stream(const Stream& stream);
// Makes the stream's next command wait for `ticket` of another stream.
void enqueue_wait(Stream& stream, const std::shared_ptr<Stream>& other, Stream::Ticket ticket);

// All streams that exist, for those who wait for or watch them all.
std::vector<std::shared_ptr<Stream>> all_streams();
void check_time_limits();
// The name of a cooperative kernel that was launched on any stream and is not done; empty if there
// is none.
std::string unfinished_cooperative_kernel();

// The host has just synchronised with a stream, an event or the device.
void host_has_synchronised();

// Runs `function` on the process's one host-function thread, and returns when it has.
void run_host_function(cudaHostFn_t function, void* user_data);

}  // namespace cuda_on_cpu
