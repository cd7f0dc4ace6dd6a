// Handles that cannot be opened, and owners that are killed. For the CPU only: on a GPU the driver
// answers for all of this.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/report/process.hpp"
#include "tests/common/report/temporary_folder.hpp"
#include "tests/common/runtime/ipc_memory.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"
#include "tests/support/text.hpp"

namespace ddp::test {
namespace {

std::string refusal_of(const std::string& handle) {
    try {
        DDP_CHECK(cudaIpcCloseMemHandle(open_handle(handle)));
    } catch (const GpuError& error) {
        return error.what();
    }
    return "(opened)";
}

// A process that owns memory, prints its name, and waits to be killed.
TEST_CASE("child owns memory and waits", "[.child]") {
    Buffer<int> data(16 << 20);  // 64 MiB
    Stream stream;
    launch(stream, grid_for(element_count), write_index, data.data(), element_count, 7);
    stream.synchronize();
    std::printf("%s\n", handle_of(data.data()).c_str());
    std::fflush(stdout);
    for (;;)
        pause();
}

// A process that runs a test case of this program, and is read line by line.
class Tenant {
  public:
    Tenant(const std::string& name, const std::vector<std::string>& environment) {
        int output[2];
        REQUIRE(pipe2(output, O_CLOEXEC) == 0);
        process_ =
            start_process({"/proc/self/exe", name},
                          {.environment = environment_with(environment), .output = output[1]});
        close(output[1]);
        lines_ = fdopen(output[0], "r");
    }
    ~Tenant() {
        end();
        std::fclose(lines_);
    }
    std::string line() {
        char text[1000] = "";
        if (std::fgets(text, sizeof text, lines_) == nullptr)
            return "(ended)";
        text[std::strcspn(text, "\n")] = 0;
        return has(text, "Filters:") ? line() : text;
    }
    void end() {
        if (process_ != 0 && kill(process_, SIGKILL) == 0)
            waitpid(std::exchange(process_, 0), nullptr, 0);
    }
    std::string process() const { return std::to_string(process_); }

  private:
    pid_t process_ = 0;
    FILE* lines_ = nullptr;
};

struct Owner : Tenant {
    Owner() : Tenant("child owns memory and waits", {}) {
        REQUIRE(handle.size() == 2 * sizeof(cudaIpcMemHandle_t));
    }
    const std::string handle = line();
};

// The files that a process has open or mapped, by name.
std::set<std::string> files_of(const std::string& process) {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(process + "/fd"))
        names.insert(std::filesystem::read_symlink(entry.path()).string());
    std::ifstream maps(process + "/maps");
    std::string line;
    while (std::getline(maps, line))
        if (const std::size_t name = line.find('/'); name != std::string::npos)
            names.insert(line.substr(name));
    return names;
}

// What stands in the folders where other programs keep shared memory. Somebody else may be at work
// there, so only names that could be ours count: not those of the folders that tests beside this
// one make for their reports and data.
std::set<std::string> names_of_ours() {
    std::set<std::string> names;
    for (const char* folder : {"/dev/shm", "/tmp"})
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
            const std::string name = entry.path().string();
            for (const char* word : {"cuda", "ddp", "device", "memory"})
                if (has(name, word) && !name.starts_with("/tmp/ddp_"))
                    names.insert(name);
        }
    return names;
}

// The memory files of all processes that this process has mapped.
std::set<std::string> mapped_memory() {
    std::set<std::string> inodes;
    std::ifstream maps("/proc/self/maps");
    std::string addresses, rights, offset, device, inode, rest;
    while (maps >> addresses >> rights >> offset >> device >> inode && std::getline(maps, rest))
        if (has(rest, "memfd:device memory"))
            inodes.insert(inode);
    return inodes;
}

TEST_CASE("an owner that is killed leaves nothing behind") {
    Buffer<int> own(1);
    const std::set<std::string> names = names_of_ours(), memory = mapped_memory();
    REQUIRE(memory.size() == 1);
    Owner owner;
    const std::set<std::string> program = files_of("/proc/self");  // which may stand in /tmp itself
    for (const std::string& name : files_of("/proc/" + owner.process())) {
        CAPTURE(name);
        REQUIRE((program.contains(name) || !name.starts_with("/tmp")));
        REQUIRE_FALSE(name.starts_with("/dev/shm"));
    }
    int* data = open_handle(owner.handle);
    REQUIRE(mapped_memory().size() == 2);
    owner.end();
    REQUIRE(wrong_in(data, 7) == 0);  // the memory exists as long as one process has it mapped
    DDP_CHECK(cudaIpcCloseMemHandle(data));
    REQUIRE(mapped_memory() == memory);  // and no longer: it never had a name in a file system
    for (const std::string& name : names_of_ours())
        REQUIRE(names.contains(name));
}

TEST_CASE("handles that cannot be opened") {
    Buffer<int> data(10);
    const std::string own = refusal_of(handle_of(data.data()));
    REQUIRE(has(own, "opens a handle of its own process; use the pointer itself"));
    const std::string garbage = refusal_of(std::string(128, '7'));
    REQUIRE(has(garbage, "was given bytes that cudaIpcGetMemHandle did not make"));
    Owner owner;
    const std::string process = owner.process();
    owner.end();
    const std::string ended = refusal_of(owner.handle);
    REQUIRE(has(ended, "cudaIpcOpenMemHandle at tests/common/runtime/ipc_memory.hpp:"));
    REQUIRE(has(ended, "process " + process + " has ended"));
    PinnedBuffer<int> pinned(3);
    cudaIpcMemHandle_t handle;
    for (void* pointer : {static_cast<void*>(data.data() + 1), static_cast<void*>(pinned.data())}) {
        const cudaError_t error = cudaIpcGetMemHandle(&handle, pointer);
        REQUIRE(error == cudaErrorInvalidValue);
        REQUIRE(has(cudaGetErrorString(error), "needs the first byte of a cudaMalloc"));
    }
}

TEST_CASE("child maps and reads past the end", "[.child]") {
    int* data = open_handle(std::getenv(handle_number));
    Stream stream;
    Buffer<int> wrong(1);
    launch(stream, {1, 1}, count_wrong, data + element_count, element_count, 1, wrong.data());
    try {
        stream.synchronize();
    } catch (const GpuError& error) {
        std::puts(error.what());
    }
    DDP_CHECK(cudaDeviceReset());
}

TEST_CASE("a kernel that leaves another process's memory is named") {
    Buffer<int> data(element_count);
    const ChildResult child = run_child("child maps and reads past the end",
                                        {handle_number + ("=" + handle_of(data.data()))});
    INFO(child.output);
    REQUIRE(has(child.output, "count_wrong(int const*, int, int, int*)"));
    REQUIRE(has(child.output, "past the end of the 4012 bytes that cudaIpcOpenMemHandle at"));
    REQUIRE(child.exit_code == 0);
}

// ---- Processes that share a GPU

__global__ void wait_forever(volatile int* begun, volatile int* flag) {
    *begun = 1;
    while (*flag == 0)
        __nanosleep(1000);
}
__global__ void do_little() {}

void say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}
std::string free_mebibytes() {
    std::size_t free = 0, all = 0;
    DDP_CHECK(cudaMemGetInfo(&free, &all));
    return std::to_string(free >> 20) + " of " + std::to_string(all >> 20) + " MiB are free";
}

TEST_CASE("child holds most of a GPU", "[.child]") {
    Buffer<char> memory(40 << 20);
    PinnedBuffer<int> flags(2);
    flags[0] = flags[1] = 0;
    Stream stream;
    launch_cooperative(stream, {3, 1}, wait_forever, flags.data(), flags.data() + 1);
    while (*static_cast<volatile int*>(flags.data()) == 0)
        sched_yield();
    say(free_mebibytes());
    stream.synchronize();
}

TEST_CASE("child takes what is left of a GPU", "[.child]") {
    say(free_mebibytes());
    void* memory = nullptr;
    say(cudaMalloc(&memory, 40 << 20) == cudaSuccess ? "has 40 MiB" : "has no 40 MiB");
    say(cudaGetErrorString(cudaGetLastError()));
    DDP_CHECK(cudaMalloc(&memory, 20 << 20));
    Stream stream, other;
    launch_cooperative(stream, {1, 1}, do_little);
    stream.synchronize();
    say("one block has run");
    launch_cooperative(stream, {2, 1}, do_little);
    launch_cooperative(other, {1, 1}, do_little);
    other.synchronize();
    say(forget_not_ready(cudaStreamQuery(stream)) == cudaSuccess ? "two have run" : "two wait");
    stream.synchronize();
    say(free_mebibytes());
    DDP_CHECK(cudaMalloc(&memory, 40 << 20));
    say("all is free");
    _exit(0);
}

TEST_CASE("processes share the memory and the multiprocessors of a GPU") {
    const TemporaryFolder folder;
    const std::vector<std::string> gpu = {
        "CUDA_ON_CPU=strict,multiprocessors=4,memory=64,timeout=60,gpu=" +
        (folder / "gpu").string()};
    Tenant first("child holds most of a GPU", gpu);
    REQUIRE(first.line() == "24 of 64 MiB are free");
    Tenant second("child takes what is left of a GPU", gpu);
    REQUIRE(second.line() == "24 of 64 MiB are free");
    REQUIRE(second.line() == "has no 40 MiB");
    REQUIRE(has(second.line(), "asked for 41943040 bytes; 41943040 of 67108864 are in use"));
    REQUIRE(second.line() == "one block has run");
    REQUIRE(second.line() == "two wait");
    first.end();  // kill -9: what it held is free
    REQUIRE(second.line() == "44 of 64 MiB are free");
    REQUIRE(second.line() == "all is free");
}

}  // namespace
}  // namespace ddp::test
