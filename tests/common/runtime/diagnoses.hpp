#pragma once
// What the tests of diagnoses share: they make a mistake and read its message.
#include <source_location>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/gpu/gpu.hpp"
#include "cuda_on_cpu/settings.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/text.hpp"

namespace ddp::test {

#if defined(__SANITIZE_THREAD__) && !defined(DDP_SEES_RACES)
inline constexpr bool thread_sanitizer = true;
#else
inline constexpr bool thread_sanitizer = false;
#endif

// Returns a line of the calling file, as messages name it.
inline std::string here(int line, std::source_location caller = std::source_location::current()) {
    return std::string(caller.file_name()) + ":" + std::to_string(line);
}

inline void require_parts(const std::string& text, const std::vector<std::string>& parts) {
    INFO(text);
    for (const std::string& part : parts) {
        INFO("must say: " << part);
        REQUIRE(has(text, part));
    }
}

template <class Action>
std::string message_of(Action action) {
    try {
        action();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "(nothing was said)";
}

inline __global__ void count_up(int* value) {
    *value += static_cast<int>(blockIdx.x + threadIdx.x) + 1;
}

// Every failure leaves a lost device: cudaDeviceReset must give a working one.
inline void reset_device() {
    DDP_CHECK(cudaDeviceReset());
    REQUIRE(cudaGetLastError() == cudaSuccess);
    Stream stream;
    Buffer<int> value(std::vector<int>{41});
    launch(stream, {1, 1}, count_up, value.data());
    stream.synchronize();
    REQUIRE(value.to_host_now()[0] == 42);
}

// Returns what was said of a kernel's failure. `action` owns its buffers, or they would outlive the
// reset.
template <class Action>
std::string failure_of(Action action) {
    const std::string message = message_of(action);
    REQUIRE(cudaDeviceSynchronize() != cudaSuccess);  // the device is lost, for every later call
    REQUIRE(cudaGetLastError() != cudaSuccess);
    reset_device();
    return message;
}

template <class... Parameters, class... Arguments>
std::string failure_of_kernel(const LaunchShape& shape, void (*kernel)(Parameters...),
                              Arguments... arguments) {
    return failure_of([&] {
        Stream stream;
        launch(stream, shape, kernel, arguments...);
        stream.synchronize();
    });
}

// Other settings, as change(settings) makes them, for the length of a scope.
class With {
  public:
    template <class Change>
    explicit With(Change change) {
        cuda_on_cpu::Settings changed = before_;
        change(changed);
        cuda_on_cpu::set_settings(changed);
    }
    ~With() { cuda_on_cpu::set_settings(before_); }
    With(const With&) = delete;
    With& operator=(const With&) = delete;

  private:
    const cuda_on_cpu::Settings before_ = cuda_on_cpu::settings();
};

}  // namespace ddp::test
