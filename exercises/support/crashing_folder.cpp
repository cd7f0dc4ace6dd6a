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

bool CrashingFolder::crashes(const std::string& call) {
    called_.push_back(call);
    return static_cast<int>(called_.size()) == calls_ + 1;
}

std::string CrashingFolder::crash() const {
    const auto call = static_cast<std::size_t>(calls_);
    return call < called_.size() ? "call " + std::to_string(call + 1) + ": " + called_[call] : "";
}

void CrashingFolder::change(const Change& change) {
    change(now_);
    since_sync_.push_back({called_.back(), change});
}

Contents CrashingFolder::after_kill() const {
    Contents left;
    for (const auto& [name, file] : now_)
        left[name] = files_[file].written;
    return left;
}

std::vector<Left> CrashingFolder::after_power_failure() const {
    std::vector<Left> all;
    for (std::size_t lost = 0; lost < std::size_t{1} << since_sync_.size(); lost++) {
        Names names = synced_;
        std::vector<Left> some(1);
        for (std::size_t i = 0; i < since_sync_.size(); i++)
            if (lost >> i & 1)
                some[0].lost += "\nLost: the change of names by " + since_sync_[i].first +
                                " (no sync_names since).";
            else
                since_sync_[i].second(names);
        for (const auto& [name, number] : names) {
            const File& file = files_[number];
            std::vector<std::vector<std::uint8_t>> versions{file.written};
            if (file.written != file.synced) {
                versions.push_back(file.synced);
                for (const std::size_t size : {std::size_t{0}, file.written.size() / 2})
                    versions.push_back({file.written.begin(),
                                        file.written.begin() + static_cast<std::ptrdiff_t>(size)});
            }
            std::vector<Left> with;
            for (const Left& before : some)
                for (const auto& version : versions) {
                    with.push_back(before);
                    with.back().contents[name] = version;
                    if (version != file.written)
                        with.back().lost += "\nLost: bytes of " + name + " (no sync since).";
                }
            some = with;
        }
        all.insert(all.end(), some.begin(), some.end());
    }
    return all;
}

void CrashingFolder::write(const std::string& name, std::initializer_list<ddp::Bytes> parts) {
    const bool goes_down = crashes("write(" + name + ")");
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
    if (crashes("sync(" + name + ")"))
        throw Crash();
    File& file = files_[now_.at(name)];
    file.synced = file.written;
}

void CrashingFolder::rename(const std::string& from, const std::string& to) {
    if (crashes("rename(" + from + ", " + to + ")"))
        throw Crash();
    const std::size_t number = now_.at(from);
    change([=](Names& names) {
        names.erase(from);
        names[to] = number;
    });
}

void CrashingFolder::sync_names() {
    if (crashes("sync_names()"))
        throw Crash();
    synced_ = now_;
    since_sync_.clear();
}

void CrashingFolder::remove(const std::string& name) {
    if (crashes("remove(" + name + ")"))
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
