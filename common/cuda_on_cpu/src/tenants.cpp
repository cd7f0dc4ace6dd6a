#include "tenants.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "cuda_on_cpu/settings.hpp"

namespace cuda_on_cpu {
namespace {

struct Tenant {
    long long process;  // 0: a free line
    long long bytes;
    long long multiprocessors;
};
constexpr std::size_t max_tenants = 128;

// The file of the GPU, mapped. The lock of a file is free as soon as its owner has ended.
class Ledger {
  public:
    explicit Ledger(const std::string& path) {
        file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        constexpr std::size_t bytes = max_tenants * sizeof(Tenant);
        void* mapped = file_ < 0 || ftruncate(file_, bytes) != 0
                           ? MAP_FAILED
                           : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
        if (mapped == MAP_FAILED) {
            std::fprintf(stderr, "error: CUDA_ON_CPU: gpu=%s is no file to write to (%s).\n",
                         path.c_str(), std::strerror(errno));
            std::exit(2);
        }
        tenants_ = static_cast<Tenant*>(mapped);
    }

    // Calls `change(own, others)` while no other process changes the file: this process's line, and
    // the sum of what the others hold.
    template <class Change>
    auto change(Change change) {
        std::lock_guard one_thread(mutex_);
        while (flock(file_, LOCK_EX) != 0) {
        }
        Tenant* own = nullptr;
        Tenant others{};
        for (Tenant* each = tenants_; each != tenants_ + max_tenants; each++) {
            if (each->process != 0 && kill(static_cast<pid_t>(each->process), 0) != 0 &&
                errno == ESRCH)
                *each = {};
            if (each->process == getpid() || (own == nullptr && each->process == 0))
                own = each;
            if (each->process != 0 && each->process != getpid()) {
                others.bytes += each->bytes;
                others.multiprocessors += each->multiprocessors;
            }
        }
        if (own == nullptr) {
            std::fprintf(stderr, "error: CUDA_ON_CPU: more than %zu processes share the GPU.\n",
                         max_tenants);
            std::exit(2);
        }
        own->process = getpid();
        const auto result = change(*own, others);
        flock(file_, LOCK_UN);
        return result;
    }

  private:
    std::mutex mutex_;
    int file_ = -1;
    Tenant* tenants_ = nullptr;
};

Ledger& ledger() {
    static auto* instance = new Ledger(settings().gpu);
    return *instance;
}

}  // namespace

bool has_tenants() {
    static const bool answer = !settings().gpu.empty();  // fixed when the process starts
    return answer;
}

int take_from_tenants(int least, int most, int all) {
    return ledger().change([&](Tenant& own, const Tenant& others) {
        const int free = all - static_cast<int>(own.multiprocessors + others.multiprocessors);
        const int taken = least < 0 ? least : std::min(most, free);
        if (taken < least)
            return 0;
        own.multiprocessors += taken;
        return taken;
    });
}

bool hold_bytes(long long bytes, std::size_t all) {
    return ledger().change([&](Tenant& own, const Tenant& others) {
        const bool fits =
            bytes <= 0 || own.bytes + others.bytes + bytes <= static_cast<long long>(all);
        own.bytes += fits ? bytes : 0;
        return fits;
    });
}

std::size_t bytes_of_other_tenants() {
    if (!has_tenants())
        return 0;
    return ledger().change(
        [](Tenant&, const Tenant& others) { return static_cast<std::size_t>(others.bytes); });
}

}  // namespace cuda_on_cpu
