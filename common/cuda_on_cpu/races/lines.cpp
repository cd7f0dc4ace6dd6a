#include "lines.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>

#include "kernel_name.hpp"

namespace cuda_on_cpu {
namespace {

constexpr const char* unknown = "a line that is not known";

bool is_of_a_library(const std::string& line) {
    return line.find("/cuda_on_cpu/include/") != std::string::npos || line.starts_with("/usr/") ||
           line.starts_with("??");
}

// Without the folder of the book, and what addr2line adds.
std::string shortened(const std::string& line) {
    const std::string book = CUDA_ON_CPU_BOOK;
    const std::string plain = line.substr(0, line.find_first_of(" \n"));
    return plain.starts_with(book) ? plain.substr(book.size()) : plain;
}

}  // namespace

// A call returns behind itself: one byte before is in its line.
std::uint32_t number_of_place(const void* code) {
    static const std::uintptr_t begin = load_address();
    const std::uintptr_t number = reinterpret_cast<std::uintptr_t>(code) - 1 - begin;
    return number < 1u << 30 ? static_cast<std::uint32_t>(number) : 0;
}

std::string line_of_place(std::uint32_t place) {
    std::array<char, 4096> text{};
    const ssize_t length = readlink("/proc/self/exe", text.data(), text.size() - 1);
    if (place == 0 || length <= 0)
        return unknown;
    const std::string program(text.data(), static_cast<std::size_t>(length));
    std::string quoted = "'";
    for (const char c : program)
        quoted += c == '\'' ? "'\\''" : std::string(1, c);
    std::snprintf(text.data(), text.size(), "addr2line -i -e %s' 0x%x 2>/dev/null", quoted.c_str(),
                  place);
    const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(text.data(), "r"), pclose);
    std::string innermost;
    while (output && std::fgets(text.data(), text.size(), output.get()) != nullptr) {
        const std::string line = text.data();
        if (innermost.empty() && !line.starts_with("??"))
            innermost = line;
        if (!is_of_a_library(line))
            return shortened(line);
    }
    return innermost.empty() ? unknown : shortened(innermost);
}

}  // namespace cuda_on_cpu
