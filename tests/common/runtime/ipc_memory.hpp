#pragma once
// Device memory of another process: a handle travels as text in an environment variable, and the
// other process is the test program again, in one of its hidden cases.
#include <cstdio>
#include <string>

#include "common/gpu/gpu.hpp"

namespace ddp::test {

inline constexpr const char* handle_number = "DDP_TEST_HANDLE";
inline constexpr int element_count = 1003;

inline std::string to_hex(const cudaIpcMemHandle_t& handle) {
    std::string text;
    char digits[3];
    for (char byte : handle.reserved) {
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned int>(byte) & 0xffu);
        text += digits;
    }
    return text;
}

inline cudaIpcMemHandle_t from_hex(const std::string& text) {
    cudaIpcMemHandle_t handle{};
    for (std::size_t i = 0; i < sizeof handle.reserved && 2 * i + 1 < text.size(); i++)
        handle.reserved[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
    return handle;
}

inline std::string handle_of(void* pointer) {
    cudaIpcMemHandle_t handle;
    DDP_CHECK(cudaIpcGetMemHandle(&handle, pointer));
    return to_hex(handle);
}

inline int* open_handle(const std::string& text) {
    void* pointer = nullptr;
    DDP_CHECK(cudaIpcOpenMemHandle(&pointer, from_hex(text), cudaIpcMemLazyEnablePeerAccess));
    return static_cast<int*>(pointer);
}

static __global__ void write_index(int* data, int n, int factor) {
    for (std::size_t i : grid_range(static_cast<std::size_t>(n)))
        data[i] = factor * static_cast<int>(i);
}

static __global__ void count_wrong(const int* data, int n, int factor, int* wrong) {
    for (std::size_t i : grid_range(static_cast<std::size_t>(n)))
        if (data[i] != factor * static_cast<int>(i))
            atomicAdd(wrong, 1);
}

// How many elements are not what write_index(factor) writes.
inline int wrong_in(const int* data, int factor) {
    Stream stream;
    Buffer<int> wrong(std::vector<int>{0});
    launch(stream, grid_for(element_count), count_wrong, data, element_count, factor, wrong.data());
    stream.synchronize();
    return wrong.to_host_now()[0];
}

}  // namespace ddp::test
