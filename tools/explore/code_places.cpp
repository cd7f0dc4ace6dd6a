#include "tools/explore/code_places.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>

namespace ddp {
namespace {

// Returns "Ring::send" for "ddp::(anonymous namespace)::Ring<float>::send()".
std::string short_name(std::string function) {
    for (const std::string scope : {"(anonymous namespace)::", "ddp::"})
        for (std::size_t at = function.find(scope); at != std::string::npos;
             at = function.find(scope))
            function.erase(at, scope.size());
    std::string name;
    int depth = 0;
    for (const char c : function) {
        if (c == '(' || c == '\n')
            break;
        depth += c == '<';
        if (depth == 0)
            name += c;
        depth -= c == '>';
    }
    return name.substr(name.rfind(' ') == std::string::npos ? 0 : name.rfind(' ') + 1);
}

std::string file_name(const std::string& line) {
    const std::string plain = line.substr(0, line.find_first_of(" \n"));
    return plain.substr(plain.rfind('/') + 1);
}

// Tells whether a function is a wait or a raise itself: then its caller is of interest.
bool is_wait_or_raise(const std::string& name) {
    const std::string own = name.substr(name.rfind(':') + 1);
    return own.starts_with("wait_") || own.starts_with("raise_");
}

// Tells whether a line belongs to the protocol: and not to the system, the runtime or a wait that
// polls.
bool is_of_protocol(const std::string& line, const std::string& function) {
    if (function == "wait_at")  // of a FIFO
        return false;
    for (const char* other :
         {"/usr/", "/cuda_on_cpu/", "/common/gpu/", "wait.cuh", "host_flag.hpp", "??"})
        if (line.find(other) != std::string::npos)
            return false;
    return true;
}

}  // namespace

const CodePlace& CodePlaces::at(std::span<const void* const> calls) {
    const std::vector<const void*> key(calls.begin(), calls.end());
    const auto [found, is_new] = places_.try_emplace(key);
    CodePlace& place = found->second;
    if (!is_new)
        return place;
    for (auto call = calls.rbegin(); call != calls.rend(); ++call)
        for (const Line& line : lines_of(*call)) {
            const std::string name = short_name(line.function);
            if (!is_of_protocol(line.line, name))
                continue;
            place.lines += file_name(line.line) + " ";
            place.name = name;
            if (!is_wait_or_raise(place.name) && place.name.find("operator") == std::string::npos)
                return place;
        }
    return place;
}

// A call returns behind itself: one byte before is in its line.
const std::vector<CodePlaces::Line>& CodePlaces::lines_of(const void* call) {
    const auto [found, is_new] = lines_.try_emplace(call);
    Dl_info info{};
    if (!is_new || dladdr(call, &info) == 0)
        return found->second;
    std::array<char, 4096> text{};
    std::snprintf(text.data(), text.size(),
                  "addr2line -i -f -C -e /proc/$PPID/exe 0x%zx 2>/dev/null",
                  static_cast<std::size_t>(static_cast<const char*>(call) -
                                           static_cast<const char*>(info.dli_fbase)) -
                      1);
    const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(text.data(), "r"), pclose);
    Line line;
    for (bool is_function = true;
         output && std::fgets(text.data(), text.size(), output.get()) != nullptr;
         is_function = !is_function) {
        (is_function ? line.function : line.line) = text.data();
        if (!is_function)
            found->second.push_back(line);
    }
    return found->second;
}

}  // namespace ddp
