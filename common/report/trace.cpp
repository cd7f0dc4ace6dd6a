#include "common/report/trace.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/report/csv.hpp"

#if defined(DDP_CUDA) && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define DDP_NVTX
#endif

namespace ddp {
namespace {

using Json = nlohmann::ordered_json;

std::string to_string(const Json& event) {
    return event.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Returns a number for the track that is different for all tracks of a run. A viewer takes a thread
// with the number of its process for the main thread and puts it on top; (process + 1) * 1000
// never equals process, so no track looks like one.
int thread_id(Track track) {
    return (track.process + 1) * 1000 + track.index;
}

double microseconds(std::chrono::steady_clock::duration time) {
    return std::chrono::duration<double, std::micro>(time).count();
}

// Returns an event without a time, which names a track or sorts it.
std::string metadata(const char* what, Track track, const char* key, const Json& value) {
    return to_string({{"ph", "M"},
                      {"name", what},
                      {"pid", track.process},
                      {"tid", thread_id(track)},
                      {"args", {{key, value}}}});
}

void write_file(const std::filesystem::path& path, const std::string& text) {
    errno = 0;
    std::ofstream stream(path, std::ios::binary);
    stream << text << std::flush;
    if (!stream)
        throw std::runtime_error(unwritable(path, "--trace"));
}

std::string document(const std::string& events) {
    return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" + events + "\n]}\n";
}

}  // namespace

Trace::Trace(std::filesystem::path path) : path_(std::move(path)) {
    if (enabled())
        write_file(path_, document(""));
}

Track Trace::track(int process, const std::string& name) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string>& names = tracks_[process];
    const auto found = std::find(names.begin(), names.end(), name);
    const Track track{process, static_cast<int>(found - names.begin())};
    if (found != names.end())
        return track;
    if (names.empty()) {
        append_locked(metadata("process_name", track, "name", "rank " + std::to_string(process)));
        append_locked(metadata("process_sort_index", track, "sort_index", process));
    }
    append_locked(metadata("thread_name", track, "name", name));
    append_locked(metadata("thread_sort_index", track, "sort_index", track.index));
    names.push_back(name);
    return track;
}

void Trace::add(Track track, const std::string& name, Time begin, Time end,
                const TraceArguments& arguments) {
    if (!enabled())
        return;
    Json event = {{"ph", "X"},
                  {"name", name},
                  {"pid", track.process},
                  {"tid", thread_id(track)},
                  {"ts", microseconds(begin.time_since_epoch())},
                  {"dur", microseconds(end - begin)}};
    for (const auto& [key, value] : arguments)
        event["args"][key] = value;
    append(to_string(event));
}

std::string Trace::events() const {
    const std::lock_guard lock(mutex_);
    return events_;
}

void Trace::append(const std::string& events) {
    const std::lock_guard lock(mutex_);
    append_locked(events);
}

void Trace::append_locked(const std::string& event) {
    if (!enabled() || event.empty())
        return;
    events_ += (events_.empty() ? "" : ",\n") + event;
}

void Trace::write() const {
    if (enabled())
        write_file(path_, document(events()));
}

Span::Span(Trace& trace, Track track, std::string name, TraceArguments arguments)
    : trace_(trace), track_(track), name_(std::move(name)), arguments_(std::move(arguments)) {
#ifdef DDP_NVTX
    nvtxRangePushA(name_.c_str());
#endif
    begin_ = std::chrono::steady_clock::now();
}

Span::~Span() {
    trace_.add(track_, name_, begin_, std::chrono::steady_clock::now(), arguments_);
#ifdef DDP_NVTX
    nvtxRangePop();
#endif
}

}  // namespace ddp
