#include "capture.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "graph.hpp"

namespace cuda_on_cpu {

// The commands that a place in the graph has behind it: how many of each lane.
using Reached = std::map<std::size_t, std::size_t>;

class Capture {
  public:
    Capture(std::shared_ptr<Stream> origin, cudaStreamCaptureMode mode) : mode(mode) {
        join(std::move(origin));
    }

    void join(std::shared_ptr<Stream> stream) {
        graph->devices.push_back(stream->device);
        reached.emplace_back();
        streams.push_back(std::move(stream));
    }
    std::size_t lane_of(const Stream& stream) const {
        const auto found = std::ranges::find(streams, &stream, &std::shared_ptr<Stream>::get);
        return static_cast<std::size_t>(found - streams.begin());
    }
    bool includes(const Stream& stream) const { return lane_of(stream) < streams.size(); }

    void add(std::size_t lane, std::shared_ptr<Command> command) {
        graph->entries.push_back({Graph::Entry::Kind::command, lane, std::move(command)});
        reached[lane][lane]++;
    }
    std::shared_ptr<CapturedMark> add_mark(std::size_t lane, std::shared_ptr<Capture> self);
    void add_wait(std::size_t lane, const CapturedMark& mark);

    // Returns how many commands of other streams the end of the first one does not wait for.
    std::size_t count_unjoined() const {
        std::size_t count = 0;
        for (std::size_t lane = 1; lane < reached.size(); lane++) {
            const auto of = [lane](const Reached& place) {
                const auto found = place.find(lane);
                return found == place.end() ? std::size_t{0} : found->second;
            };
            count += of(reached[lane]) - of(reached[0]);
        }
        return count;
    }

    const cudaStreamCaptureMode mode;
    const std::thread::id thread = std::this_thread::get_id();
    std::shared_ptr<Graph> graph = std::make_shared<Graph>();
    std::vector<std::shared_ptr<Stream>> streams;  // by lane, until the end
    std::vector<Reached> reached;                  // by the end of each lane
    std::string failure;                           // what has made it useless; empty if nothing has
};

struct CapturedMark {
    std::shared_ptr<Capture> capture;
    std::size_t entry;
    Reached reached;
};

std::shared_ptr<CapturedMark> Capture::add_mark(std::size_t lane, std::shared_ptr<Capture> self) {
    graph->entries.push_back({Graph::Entry::Kind::mark, lane});
    return std::make_shared<CapturedMark>(std::move(self), graph->entries.size() - 1,
                                          reached[lane]);
}

void Capture::add_wait(std::size_t lane, const CapturedMark& mark) {
    graph->entries.push_back({Graph::Entry::Kind::wait, lane, nullptr, mark.entry});
    for (const auto& [other, commands] : mark.reached)
        reached[lane][other] = std::max(reached[lane][other], commands);
}

namespace {

struct Captures {
    std::mutex mutex;
    std::vector<std::shared_ptr<Capture>> open;

    std::shared_ptr<Capture> of(const Stream& stream) const {
        const auto found = std::ranges::find_if(
            open, [&](const auto& capture) { return capture->includes(stream); });
        return found == open.end() ? nullptr : *found;
    }
    void close(const std::shared_ptr<Capture>& capture) {
        std::erase(open, capture);
        open_captures--;
        capture->streams.clear();  // an event may keep the capture for long
    }
};
Captures& captures() {
    static auto* instance = new Captures;
    return *instance;
}

// Fails the call, and with it the capture: its end will say so.
cudaError_t fail_capture(Capture& capture, cudaError_t code, const std::string& diagnosis) {
    if (capture.failure.empty())
        capture.failure = diagnosis;
    return call_failed(code, diagnosis);
}

cudaError_t refuse_failed(const Capture& capture, const char* call) {
    return call_failed(cudaErrorStreamCaptureInvalidated,
                       std::string(call) +
                           ": the capture of this stream has failed before, and only "
                           "cudaStreamEndCapture ends it: " +
                           capture.failure);
}

// Memory for a command that its graph owns.
std::shared_ptr<Command> make_command(const std::function<Command*(void*)>& construct) {
    constexpr std::align_val_t alignment{64};
    return {construct(::operator new(Stream::slot_bytes, alignment)), [](Command* command) {
                command->~Command();
                ::operator delete(static_cast<void*>(command), alignment);
            }};
}

}  // namespace

bool note_command(Stream& stream, const std::function<Command*(void*)>& construct) {
    std::lock_guard lock(captures().mutex);
    const auto capture = captures().of(stream);
    if (capture)
        capture->add(capture->lane_of(stream), make_command(construct));
    return capture != nullptr;
}

cudaError_t order_while_captured(Stream& stream, const char* call) {
    {
        std::lock_guard lock(captures().mutex);
        if (const auto capture = captures().of(stream))
            return capture->failure.empty() ? cudaSuccess : refuse_failed(*capture, call);
        if (is_default_stream(stream))
            for (const auto& capture : captures().open)
                for (const auto& captured : capture->streams)
                    if (captured->blocking && captured->device == stream.device)
                        return fail_capture(
                            *capture, cudaErrorStreamCaptureImplicit,
                            std::string(call) +
                                ": the default stream waits for all blocking streams, and "
                                "one of them is captured, which does nothing now: use "
                                "another stream, or make that one with "
                                "cudaStreamNonBlocking");
    }
    order_with_default_stream(stream);
    return cudaSuccess;
}

cudaError_t refuse_if_captured(Stream& stream, const char* call, const char* why) {
    if (nobody_captures())
        return cudaSuccess;
    std::lock_guard lock(captures().mutex);
    const auto capture = captures().of(stream);
    if (!capture)
        return cudaSuccess;
    return fail_capture(*capture, cudaErrorStreamCaptureUnsupported,
                        std::string(call) + ": this stream is captured, " + why);
}

cudaError_t refuse_if_any_is_captured(const char* call) {
    if (nobody_captures())
        return cudaSuccess;
    std::lock_guard lock(captures().mutex);
    for (const auto& capture : captures().open)
        return fail_capture(
            *capture, cudaErrorStreamCaptureUnsupported,
            std::string(call) +
                " waits for all streams, and one of them is captured, which does nothing "
                "before its graph is launched: call it behind cudaStreamEndCapture");
    return cudaSuccess;
}

cudaError_t refuse_unsafe(const std::string& call) {
    std::lock_guard lock(captures().mutex);
    for (const auto& capture : captures().open) {
        const bool is_own = capture->thread == std::this_thread::get_id();
        if (capture->mode == cudaStreamCaptureModeGlobal ||
            (capture->mode == cudaStreamCaptureModeThreadLocal && is_own))
            return fail_capture(
                *capture, cudaErrorStreamCaptureUnsupported,
                call + " may wait for a stream, and while " + (is_own ? "this" : "another") +
                    " thread captures one it is not allowed: call it before, or capture "
                    "with " +
                    (is_own ? "cudaStreamCaptureModeRelaxed" : "cudaStreamCaptureModeThreadLocal"));
    }
    return cudaSuccess;
}

cudaError_t give_up_capture(Stream& stream) {
    if (nobody_captures())
        return cudaSuccess;
    std::lock_guard lock(captures().mutex);
    const auto capture = captures().of(stream);
    if (!capture)
        return cudaSuccess;
    captures().close(capture);
    return call_failed(cudaErrorStreamCaptureUnsupported,
                       "cudaStreamDestroy: this stream is captured, and its capture is given up: "
                       "call cudaStreamEndCapture first");
}

std::shared_ptr<CapturedMark> note_mark(Stream& stream) {
    if (nobody_captures())
        return nullptr;
    std::lock_guard lock(captures().mutex);
    const auto capture = captures().of(stream);
    return capture ? capture->add_mark(capture->lane_of(stream), capture) : nullptr;
}

bool note_wait(const std::shared_ptr<Stream>& stream, const std::shared_ptr<CapturedMark>& mark,
               bool was_recorded, cudaError_t* error) {
    if (nobody_captures() && !mark)
        return false;
    std::lock_guard lock(captures().mutex);
    const auto own = captures().of(*stream);
    if (!own && !mark)
        return false;
    *error = cudaSuccess;
    if (!mark) {
        if (was_recorded)
            *error = fail_capture(
                *own, cudaErrorStreamCaptureIsolation,
                "cudaStreamWaitEvent: a captured stream is to wait for an event that was "
                "not recorded in the same capture, and a graph can wait for nothing "
                "outside of it: let the stream on which it is launched wait");
        return true;
    }
    const auto source = mark->capture;
    if (std::ranges::find(captures().open, source) == captures().open.end())
        *error = call_failed(cudaErrorCapturedEvent,
                             "cudaStreamWaitEvent: the event was last recorded in a captured "
                             "stream, and that capture has ended: record it anew");
    else if (!source->failure.empty())
        *error = refuse_failed(*source, "cudaStreamWaitEvent");
    else if (is_default_stream(*stream))
        *error = fail_capture(
            *source, cudaErrorStreamCaptureImplicit,
            "cudaStreamWaitEvent: the default stream cannot join a capture: use another");
    else if (own && own != source) {
        constexpr const char* diagnosis =
            "cudaStreamWaitEvent: this stream is captured, and the event belongs to another "
            "capture: two captures cannot become one";
        fail_capture(*own, cudaErrorStreamCaptureMerge, diagnosis);
        *error = fail_capture(*source, cudaErrorStreamCaptureMerge, diagnosis);
    } else {
        if (!own)
            source->join(stream);
        source->add_wait(source->lane_of(*stream), *mark);
    }
    return true;
}

cudaError_t refuse_captured_event(const std::shared_ptr<CapturedMark>& mark, const char* call) {
    if (!mark)
        return cudaSuccess;
    const std::string diagnosis =
        std::string(call) +
        ": the event was last recorded in a captured stream, where it marks a place in the graph "
        "and no moment: record it behind cudaGraphLaunch";
    std::lock_guard lock(captures().mutex);
    return fail_capture(*mark->capture, cudaErrorCapturedEvent, diagnosis);
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
    constexpr const char* call = "cudaStreamBeginCapture";
    if (const cudaError_t status = enter_call(call))
        return status;
    const auto stream = find_stream(handle, call);
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    if (handle == nullptr)
        return call_failed(
            cudaErrorStreamCaptureUnsupported,
            std::string(call) + ": the default stream cannot be captured: make a stream");
    std::lock_guard lock(captures().mutex);
    if (captures().of(*stream))
        return call_failed(cudaErrorIllegalState,
                           std::string(call) + ": this stream is captured already");
    captures().open.push_back(std::make_shared<Capture>(stream, mode));
    open_captures++;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
    constexpr const char* call = "cudaStreamEndCapture";
    *graph = nullptr;
    if (const cudaError_t error = check_caller(call))
        return error;
    const auto stream = find_stream(handle, call);
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    std::lock_guard lock(captures().mutex);
    const auto capture = captures().of(*stream);
    if (!capture)
        return call_failed(cudaErrorIllegalState,
                           std::string(call) + ": this stream is not captured");
    if (capture->streams.front() != stream)
        return fail_capture(
            *capture, cudaErrorStreamCaptureUnmatched,
            std::string(call) +
                ": the capture was begun on another stream, which must also end it");
    if (capture->mode != cudaStreamCaptureModeRelaxed &&
        capture->thread != std::this_thread::get_id())
        return call_failed(cudaErrorStreamCaptureWrongThread,
                           std::string(call) +
                               ": the capture was begun by another thread, which must also end it");
    captures().close(capture);
    if (!capture->failure.empty())
        return call_failed(
            cudaErrorStreamCaptureInvalidated,
            std::string(call) + ": there is no graph, as the capture failed: " + capture->failure);
    if (const std::size_t unjoined = capture->count_unjoined(); unjoined > 0)
        return call_failed(
            cudaErrorStreamCaptureUnjoined,
            std::string(call) + ": " + std::to_string(unjoined) +
                (unjoined == 1 ? " command" : " commands") +
                " of streams that have joined the capture, for which the first "
                "stream does not wait: record an event behind them, and let the first stream wait "
                "for it before the end");
    *graph = make_graph_handle(capture->graph);
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
    constexpr const char* call = "cudaStreamIsCapturing";
    if (const cudaError_t error = enter_call(call))
        return error;
    const auto stream = find_stream(handle, call);
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    std::lock_guard lock(captures().mutex);
    const auto capture = captures().of(*stream);
    *status = !capture                   ? cudaStreamCaptureStatusNone
              : capture->failure.empty() ? cudaStreamCaptureStatusActive
                                         : cudaStreamCaptureStatusInvalidated;
    return cudaSuccess;
}
