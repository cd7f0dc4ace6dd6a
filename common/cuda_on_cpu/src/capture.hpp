#pragma once
// Stream capture: between cudaStreamBeginCapture and cudaStreamEndCapture the work that a stream is
// given is not run, but noted in a graph (graph.hpp).
//
//     stream 0   begin ── A ── record e ───────────── B ── wait for f ── C ── end
//     stream 1                 wait for e: joins ── D ── record f
//
// A stream that waits for an event of a captured stream joins the capture. It leaves it with the
// end, and before that the first stream must have waited for all of its work. Events recorded
// meanwhile mark a place in the graph. Source: CUDA C++ Programming Guide, "Creating a Graph Using
// Stream Capture"; CUDA Runtime API, "Stream Management" and "Graph object thread safety".
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "runtime.hpp"
#include "stream.hpp"

namespace cuda_on_cpu {

// The captures under way. Mostly there are none: then a launch asks no more than this.
inline std::atomic<int> open_captures{0};
inline bool nobody_captures() {
    return open_captures.load(std::memory_order_relaxed) == 0;
}

// Notes the command, if the stream is captured, and returns whether it was. `construct` is as in
// Stream::enqueue.
bool note_command(Stream& stream, const std::function<Command*(void* memory)>& construct);

// Places a command at the end of the stream, or of its lane in the graph. Returns its ticket; 0 if
// it was noted.
template <class Construct>
Stream::Ticket place(Stream& stream, Construct construct) {
    if (!nobody_captures() && note_command(stream, construct))
        return 0;
    return stream.enqueue(construct);
}

// Orders the stream's next command with the default stream, as every call that places one does
// first. Errors: the stream is captured, and its capture has failed; it is the default stream, and
// a stream that would have to wait for it is captured.
cudaError_t order_while_captured(Stream& stream, const char* call);
inline cudaError_t order_before(Stream& stream, const char* call) {
    if (!nobody_captures())
        return order_while_captured(stream, call);
    order_with_default_stream(stream);
    return cudaSuccess;
}

// Does so for a command that is more than an event, and refuses it where it may stand still.
inline cudaError_t begin_work(Stream& stream, const char* call) {
    const cudaError_t error = check_stream_is_used(stream, call);
    return error != cudaSuccess ? error : order_before(stream, call);
}

// Refuses a call that has no meaning for a captured stream, which does nothing before its graph is
// launched. The capture has failed then, as on a GPU. `why` ends the sentence.
cudaError_t refuse_if_captured(Stream& stream, const char* call, const char* why);
// Refuses a call that waits for all streams of the device, as one of them is captured.
cudaError_t refuse_if_any_is_captured(const char* call);
// Refuses a call that CUDA calls unsafe, such as cudaMalloc, while it is captured: by any thread
// with cudaStreamCaptureModeGlobal, by this one with cudaStreamCaptureModeThreadLocal.
cudaError_t refuse_unsafe(const std::string& call);
inline cudaError_t check_safe(const std::string& call) {
    return nobody_captures() ? cudaSuccess : refuse_unsafe(call);
}

// For a stream that was destroyed: its capture ends without a graph, and the call fails.
cudaError_t give_up_capture(Stream& stream);

// A place in a lane, which an event marks that is recorded in a captured stream.
struct CapturedMark;
// Records an event in a captured stream. Returns nullptr if the stream is not captured.
std::shared_ptr<CapturedMark> note_mark(Stream& stream);
// Makes a stream wait for such a place (it joins the capture, if it is in none), or a captured
// stream for an event that was recorded elsewhere, which is refused. `mark` is nullptr, and
// `was_recorded` says whether there is something to wait for. Returns whether that was all: if not,
// neither the stream nor the event has to do with a capture.
bool note_wait(const std::shared_ptr<Stream>& stream, const std::shared_ptr<CapturedMark>& mark,
               bool was_recorded, cudaError_t* error);
// Refuses a host's call that waits for or asks an event whose last recording was captured.
cudaError_t refuse_captured_event(const std::shared_ptr<CapturedMark>& mark, const char* call);

}  // namespace cuda_on_cpu
