#pragma once
// The place in the reader's program that called: every message names it.
#include <source_location>

namespace cuda_on_cpu {

#if defined(__cpp_lib_source_location)
using Where = std::source_location;
#else
// For editors whose clang does not know what the library's header needs (clangd 14): the same in
// five lines, by what clang knows.
class Where {
  public:
    static constexpr Where current(const char* file = __builtin_FILE(), int line = __builtin_LINE(),
                                   int column = __builtin_COLUMN(),
                                   const char* function = __builtin_FUNCTION()) {
        Where where;
        where.file_ = file, where.line_ = line, where.column_ = column, where.function_ = function;
        return where;
    }
    constexpr const char* file_name() const { return file_; }
    constexpr const char* function_name() const { return function_; }
    constexpr unsigned line() const { return static_cast<unsigned>(line_); }
    constexpr unsigned column() const { return static_cast<unsigned>(column_); }

  private:
    const char* file_ = "";
    int line_ = 0, column_ = 0;
    const char* function_ = "";
};
#endif

}  // namespace cuda_on_cpu
