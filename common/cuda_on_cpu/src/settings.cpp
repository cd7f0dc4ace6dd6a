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
#include <type_traits>

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

[[noreturn]] void refuse_setting(const std::string& word) {
    throw std::invalid_argument(
        "CUDA_ON_CPU: '" + word +
        "' is not a setting; use a comma-separated list of strict, races, order=forward, "
        "order=reversed, order=random:SEED, shape=BLOCKSxTHREADS, timeout=SECONDS, "
        "devices=N, memory=MIB, multiprocessors=N, late=MILLISECONDS, display, queues=N, "
        "depth=KERNELS, slow_host=MICROSECONDS, hiccup=MILLISECONDS, polls, waits, crowded "
        "and gpu=FILE.");
}

// Sets what one word of the list says: NAME or NAME=VALUE.
using Setter = void (*)(Settings&, const std::string& word, const std::string& value);

template <bool Settings::*field>
void set_flag(Settings& result, const std::string& word, const std::string&) {
    if (word.find('=') != std::string::npos)
        refuse_setting(word);
    result.*field = true;
}

template <auto field, int lowest, int highest>
void set_number(Settings& result, const std::string& word, const std::string& value) {
    using Number = std::remove_reference_t<decltype(result.*field)>;
    result.*field = static_cast<Number>(number(word, value, lowest, highest));
}

void set_display(Settings& result, const std::string& word, const std::string& value) {
    set_flag<&Settings::display>(result, word, value);
    result.kernel_timeout_s = 2;
}

void set_order(Settings& result, const std::string& word, const std::string& value) {
    if (value == "forward") {
        result.order = Order::forward;
    } else if (value == "reversed") {
        result.order = Order::reversed;
    } else if (value.starts_with("random:")) {
        result.order = Order::random;
        result.seed = static_cast<std::uint64_t>(number(word, value.substr(7), 0, 1e15));
    } else {
        refuse_setting(word);
    }
}

// Sets blocks and threads: "3x5" is 3 blocks of 5 threads.
void set_shape(Settings& result, const std::string& word, const std::string& value) {
    const std::size_t cross = std::min(value.find('x'), value.size());
    const std::string threads = value.substr(std::min(cross + 1, value.size()));
    result.shape = {static_cast<unsigned int>(number(word, value.substr(0, cross), 1, 64)),
                    static_cast<unsigned int>(number(word, threads, 1, 1024))};
}

void set_gpu(Settings& result, const std::string& word, const std::string& value) {
    if (value.empty())
        refuse_setting(word);
    result.gpu = value;
}

const std::map<std::string, Setter>& setters() {
    static const std::map<std::string, Setter> all = {
        {"strict", set_flag<&Settings::strict>},
        {"waits", set_flag<&Settings::waits>},
        {"crowded", set_flag<&Settings::crowded>},
        {"polls", set_flag<&Settings::polls>},
        {"races", set_flag<&Settings::races>},
        {"display", set_display},
        {"order", set_order},
        {"shape", set_shape},
        {"gpu", set_gpu},
        {"devices", set_number<&Settings::devices, 1, 64>},
        {"multiprocessors", set_number<&Settings::multiprocessors, 1, 1024>},
        {"queues", set_number<&Settings::queues, 1, 1024>},
        {"depth", set_number<&Settings::depth, 1, max_depth>},
        {"timeout", set_number<&Settings::kernel_timeout_s, 0, 1'000'000>},
        {"memory", set_number<&Settings::memory_mib, 1, 1'000'000'000>},
        {"late", set_number<&Settings::late_ms, 0, 1000>},
        {"slow_host", set_number<&Settings::slow_host_us, 0, 1'000'000>},
        {"hiccup", set_number<&Settings::hiccup_ms, 0, 10'000>}};
    return all;
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
    Settings result;
    std::istringstream words(text);
    std::string word;
    while (std::getline(words, word, ',')) {
        if (word.empty())
            continue;
        const std::size_t equals = std::min(word.find('='), word.size());
        const auto setter = setters().find(word.substr(0, equals));
        if (setter == setters().end())
            refuse_setting(word);
        setter->second(result, word, word.substr(std::min(equals + 1, word.size())));
    }
    if (result.races && !can_watch())
        throw std::invalid_argument(
            "CUDA_ON_CPU: this program was not built to look for `races`; "
            "`CUDA_ON_CPU=races ./book run NN` builds one that is, under build/cpu-races.");
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
