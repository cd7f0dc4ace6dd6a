#include "cuda_on_cpu/settings.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <tuple>

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
    std::list<Settings> all{from_environment()};  // somebody may still look at the earlier ones
    std::atomic<const Settings*> last = &all.back();
};

Current& current() {
    static auto* instance = new Current;  // used until the very end of the process: never destroyed
    return *instance;
}

}  // namespace

Settings parse_settings(const std::string& text) {
    static const std::map<std::string, bool Settings::*> flags = {{"strict", &Settings::strict},
                                                                  {"waits", &Settings::waits},
                                                                  {"crowded", &Settings::crowded},
                                                                  {"polls", &Settings::polls}};
    static const std::map<std::string, std::tuple<int Settings::*, int, int>> whole_numbers = {
        {"devices", {&Settings::devices, 1, 64}},
        {"multiprocessors", {&Settings::multiprocessors, 1, 1024}},
        {"queues", {&Settings::queues, 1, 1024}},
        {"depth", {&Settings::depth, 1, max_depth}}};
    static const std::map<std::string, std::pair<double Settings::*, double>> numbers = {
        {"timeout", {&Settings::kernel_timeout_s, 1e6}},
        {"memory", {&Settings::memory_mib, 1e9}},
        {"late", {&Settings::late_ms, 1000}},
        {"slow_host", {&Settings::slow_host_us, 1e6}},
        {"hiccup", {&Settings::hiccup_ms, 1e4}}};
    Settings result;
    std::istringstream words(text);
    std::string word;
    while (std::getline(words, word, ',')) {
        const std::size_t equals = word.find('=');
        const std::string name = word.substr(0, equals);
        const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
        if (const auto flag = flags.find(word); flag != flags.end()) {
            result.*flag->second = true;
        } else if (const auto whole = whole_numbers.find(name); whole != whole_numbers.end()) {
            const auto& [field, lowest, highest] = whole->second;
            result.*field = static_cast<int>(number(word, value, lowest, highest));
        } else if (const auto found = numbers.find(name); found != numbers.end()) {
            const auto& [field, highest] = found->second;
            result.*field = number(word, value, field == &Settings::memory_mib ? 1 : 0, highest);
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
        } else if (name == "gpu" && !value.empty()) {
            result.gpu = value;
        } else if (!word.empty()) {
            throw std::invalid_argument(
                "CUDA_ON_CPU: '" + word +
                "' is not a setting; use a comma-separated list of strict, races, order=forward, "
                "order=reversed, order=random:SEED, shape=BLOCKSxTHREADS, timeout=SECONDS, "
                "devices=N, memory=MIB, multiprocessors=N, late=MILLISECONDS, display, queues=N, "
                "depth=KERNELS, slow_host=MICROSECONDS, hiccup=MILLISECONDS, polls, waits, crowded "
                "and gpu=FILE.");
        }
    }
    return result;
}

const Settings& settings() {
    return *current().last.load();
}

void set_settings(const Settings& changed) {
    Current& now = current();
    std::lock_guard lock(now.mutex);
    const Settings& before = now.all.back();
    Settings& after = now.all.emplace_back(changed);
    after.devices = before.devices;
    after.gpu = before.gpu;
    now.last = &after;
}

}  // namespace cuda_on_cpu
