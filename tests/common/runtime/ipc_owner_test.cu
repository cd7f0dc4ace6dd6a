// Handles that cannot be opened, and owners that are killed. For the CPU only: on a GPU the driver
// answers for all of this.
#include <dirent.h>
#include <fcntl.h>
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
#include <vector>

#include "common/report/process.hpp"
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

class Owner {
  public:
    Owner() {
        int output[2];
        REQUIRE(pipe2(output, O_CLOEXEC) == 0);
        process_ =
            start_process({"/proc/self/exe", "child owns memory and waits"}, {.output = output[1]});
        close(output[1]);
        FILE* lines = fdopen(output[0], "r");
        char line[1000] = "";
        while (handle_.size() != 2 * sizeof(cudaIpcMemHandle_t) &&
               std::fgets(line, sizeof line, lines))
            handle_ = std::string(line, std::strcspn(line, "\n"));
        std::fclose(lines);
    }
    ~Owner() { end(); }
    void end() {
        if (process_ == 0)
            return;
        kill(process_, SIGKILL);
        waitpid(process_, nullptr, 0);
        process_ = 0;
    }
    const std::string& handle() const { return handle_; }
    const std::string folder() const { return "/proc/" + std::to_string(process_); }
    bool has_handle() const { return handle_.size() == 2 * sizeof(cudaIpcMemHandle_t); }

  private:
    pid_t process_ = 0;
    std::string handle_;
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
    REQUIRE(owner.has_handle());
    const std::set<std::string> program = files_of("/proc/self");  // which may stand in /tmp itself
    for (const std::string& name : files_of(owner.folder())) {
        CAPTURE(name);
        REQUIRE((program.contains(name) || !name.starts_with("/tmp")));
        REQUIRE_FALSE(name.starts_with("/dev/shm"));
    }
    int* data = open_handle(owner.handle());
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
    REQUIRE(owner.has_handle());
    const std::string process = owner.folder().substr(std::string("/proc/").size());
    owner.end();
    const std::string ended = refusal_of(owner.handle());
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

}  // namespace
}  // namespace ddp::test
