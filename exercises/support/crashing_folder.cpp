#include "exercises/support/crashing_folder.hpp"

#include <stdexcept>

namespace ddp::test {

CrashingFolder::CrashingFolder(const Contents& contents, int calls) : calls_(calls) {
    for (const auto& [name, bytes] : contents) {
        now_[name] = files_.size();
        files_.push_back({bytes, bytes});
    }
    synced_ = now_;
}

void CrashingFolder::change(const Change& change) {
    change(now_);
    since_sync_.push_back(change);
}

Contents CrashingFolder::after_kill() const {
    Contents left;
    for (const auto& [name, file] : now_)
        left[name] = files_[file].written;
    return left;
}

std::vector<Contents> CrashingFolder::after_power_failure() const {
    std::vector<Contents> all;
    for (std::size_t subset = 0; subset < std::size_t{1} << since_sync_.size(); subset++) {
        Names names = synced_;
        for (std::size_t i = 0; i < since_sync_.size(); i++)
            if (subset >> i & 1)
                since_sync_[i](names);
        std::vector<Contents> some(1);
        for (const auto& [name, number] : names) {
            const File& file = files_[number];
            std::vector<std::vector<std::uint8_t>> versions{file.synced};
            if (file.written != file.synced) {
                versions.push_back(file.written);
                for (const std::size_t size : {std::size_t{0}, file.written.size() / 2})
                    versions.push_back({file.written.begin(),
                                        file.written.begin() + static_cast<std::ptrdiff_t>(size)});
            }
            std::vector<Contents> with;
            for (const Contents& before : some)
                for (const auto& version : versions) {
                    Contents contents = before;
                    contents[name] = version;
                    with.push_back(contents);
                }
            some = with;
        }
        all.insert(all.end(), some.begin(), some.end());
    }
    return all;
}

void CrashingFolder::write(const std::string& name, std::initializer_list<ddp::Bytes> parts) {
    const bool goes_down = crashes();
    if (!now_.contains(name)) {
        const std::size_t number = files_.size();
        files_.emplace_back();
        change([=](Names& names) { names[name] = number; });
    }
    File& file = files_[now_[name]];
    file.written.clear();
    for (const ddp::Bytes part : parts)
        file.written.insert(file.written.end(), part.begin(), part.end());
    if (goes_down) {
        file.written.resize(file.written.size() / 2);
        throw Crash();
    }
}

void CrashingFolder::sync(const std::string& name) {
    if (crashes())
        throw Crash();
    File& file = files_[now_.at(name)];
    file.synced = file.written;
}

void CrashingFolder::rename(const std::string& from, const std::string& to) {
    if (crashes())
        throw Crash();
    const std::size_t number = now_.at(from);
    change([=](Names& names) {
        names.erase(from);
        names[to] = number;
    });
}

void CrashingFolder::sync_names() {
    if (crashes())
        throw Crash();
    synced_ = now_;
    since_sync_.clear();
}

void CrashingFolder::remove(const std::string& name) {
    if (crashes())
        throw Crash();
    change([=](Names& names) { names.erase(name); });
}

std::vector<std::string> CrashingFolder::names() const {
    std::vector<std::string> names;
    for (const auto& [name, file] : now_)
        names.insert(names.begin(), name);
    return names;
}

std::vector<std::uint8_t> CrashingFolder::read(const std::string& name) const {
    const auto found = now_.find(name);
    if (found == now_.end())
        throw std::runtime_error("there is no file '" + name + "' in the folder");
    return files_[found->second].written;
}

}  // namespace ddp::test
