#include "cuda_on_cpu/settings.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <stdexcept>

#include "watch.hpp"

namespace cuda_on_cpu {
namespace {

double number(const std::string& word, const std::string& text, double lowest, double highest) {
    std::size_t used = 0;
    double value = 0;
    try {
        value = std::stod(text, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    if (used == 0 || used != text.size() || !(value >= lowest && value <= highest))
        throw std::invalid_argument("CUDA_ON_CPU: '" + word + "' needs a number from " +
                                    std::to_string(static_cast<long long>(lowest)) + " to " +
                                    std::to_string(static_cast<long long>(highest)) + ".");
    return value;
}

// Returns the shape that `value` is: "3x5" is 3 blocks of 5 threads.
UsualShape shape(const std::string& word, const std::string& value) {
    const std::size_t cross = std::min(value.find('x'), value.size());
    const std::string threads = value.substr(std::min(cross + 1, value.size()));
    return {static_cast<unsigned int>(number(word, value.substr(0, cross), 1, 64)),
            static_cast<unsigned int>(number(word, threads, 1, 1024))};
}

Settings from_environment() {
    const char* text = std::getenv("CUDA_ON_CPU");
    if (text == nullptr)
        return {};
    try {
        return parse_settings(text);
    } catch (const std::invalid_argument& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        std::exit(2);
    }
}

struct Current {
    std::mutex mutex;
    Settings settings = from_environment();
    std::atomic<UsualShape> shape = settings.shape;
    std::atomic<bool> strict = settings.strict;
    std::atomic<bool> crowded = settings.crowded;
    std::atomic<int> multiprocessors = settings.multiprocessors;
    std::atomic<int> queues = settings.queues;
    std::atomic<int> depth = settings.depth;
};

Current& current() {
    static auto* instance = new Current;  // used until the very end of the process: never destroyed
    return *instance;
}

}  // namespace

Settings parse_settings(const std::string& text) {
    Settings result;
    std::istringstream words(text);
    std::string word;
    while (std::getline(words, word, ',')) {
        const std::size_t equals = word.find('=');
        const std::string name = word.substr(0, equals);
        const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
        if (word == "strict") {
            result.strict = true;
        } else if (word == "races") {
            if (!can_watch())
                throw std::invalid_argument(
                    "CUDA_ON_CPU: this program was not built to look for `races`; "
                    "`CUDA_ON_CPU=races ./book run NN` builds one that is, under build/cpu-races.");
            result.races = true;
        } else if (word == "display") {
            result.display = true;
            result.kernel_timeout_s = 2;
        } else if (word == "order=forward") {
            result.order = Order::forward;
        } else if (word == "order=reversed") {
            result.order = Order::reversed;
        } else if (name == "order" && value.starts_with("random:")) {
            result.order = Order::random;
            result.seed = static_cast<std::uint64_t>(number(word, value.substr(7), 0, 1e15));
        } else if (name == "shape") {
            result.shape = shape(word, value);
        } else if (name == "timeout") {
            result.kernel_timeout_s = number(word, value, 0, 1e6);
        } else if (name == "devices") {
            result.devices = static_cast<int>(number(word, value, 1, 64));
        } else if (name == "memory") {
            result.memory_mib = number(word, value, 1, 1e9);
        } else if (name == "multiprocessors") {
            result.multiprocessors = static_cast<int>(number(word, value, 1, 1024));
        } else if (name == "late") {
            result.late_ms = number(word, value, 0, 1000);
        } else if (name == "queues") {
            result.queues = static_cast<int>(number(word, value, 1, 1024));
        } else if (name == "depth") {
            result.depth = static_cast<int>(number(word, value, 1, most_depth));
        } else if (word == "waits") {
            result.waits = true;
        } else if (word == "crowded") {
            result.crowded = true;
        } else if (name == "gpu" && !value.empty()) {
            result.gpu = value;
        } else if (!word.empty()) {
            throw std::invalid_argument(
                "CUDA_ON_CPU: '" + word +
                "' is not a setting; use a comma-separated list of strict, races, order=forward, "
                "order=reversed, order=random:SEED, shape=BLOCKSxTHREADS, timeout=SECONDS, "
                "devices=N, memory=MIB, multiprocessors=N, late=MILLISECONDS, display, queues=N, "
                "depth=KERNELS, waits, crowded and gpu=FILE.");
        }
    }
    return result;
}

Settings settings() {
    Current& now = current();
    std::lock_guard lock(now.mutex);
    return now.settings;
}

void set_settings(const Settings& changed) {
    Current& now = current();
    std::lock_guard lock(now.mutex);
    const int devices = now.settings.devices;
    const std::string gpu = now.settings.gpu;
    now.settings = changed;
    now.settings.devices = devices;
    now.settings.gpu = gpu;
    now.shape = changed.shape;
    now.strict = changed.strict;
    now.crowded = changed.crowded;
    now.multiprocessors = changed.multiprocessors;
    now.queues = changed.queues;
    now.depth = changed.depth;
}

UsualShape usual_shape() {
    return current().shape.load(std::memory_order_relaxed);
}

bool is_strict() {
    return current().strict.load(std::memory_order_relaxed);
}

bool is_crowded() {
    return current().crowded.load(std::memory_order_relaxed);
}

int played_multiprocessors() {
    return current().multiprocessors.load(std::memory_order_relaxed);
}

int played_queues() {
    return current().queues.load(std::memory_order_relaxed);
}

int launch_queue_depth() {
    return current().depth.load(std::memory_order_relaxed);
}

}  // namespace cuda_on_cpu
