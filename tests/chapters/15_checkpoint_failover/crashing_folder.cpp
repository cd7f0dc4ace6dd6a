#include "tests/chapters/15_checkpoint_failover/crashing_folder.hpp"

namespace ddp::test {

CrashingFolder::CrashingFolder(const Contents& contents, int calls) : calls_(calls) {
    for (const auto& [name, bytes] : contents) {
        now_[name] = files_.size();
        files_.push_back({bytes, bytes});
    }
    since_sync_ = {now_};
}

Contents CrashingFolder::after_kill() const {
    Contents left;
    for (const auto& [name, file] : now_)
        left[name] = files_[file].written;
    return left;
}

std::set<Contents> CrashingFolder::after_power_failure() const {
    std::set<Contents> all;
    for (const Names& names : since_sync_) {
        std::set<Contents> some{{}};
        for (const auto& [name, number] : names) {
            const File& file = files_[number];
            std::set<std::vector<std::uint8_t>> versions{file.synced};
            if (file.written != file.synced) {
                versions.insert(file.written);
                for (const std::size_t size : {std::size_t{0}, file.written.size() / 2})
                    versions.insert({file.written.begin(),
                                     file.written.begin() + static_cast<std::ptrdiff_t>(size)});
            }
            std::set<Contents> with;
            for (const Contents& before : some)
                for (const auto& version : versions) {
                    Contents contents = before;
                    contents[name] = version;
                    with.insert(contents);
                }
            some = with;
        }
        all.insert(some.begin(), some.end());
    }
    return all;
}

void CrashingFolder::write(const std::string& name, std::initializer_list<Bytes> parts) {
    const bool goes_down = crashes();
    if (!now_.contains(name)) {
        now_[name] = files_.size();
        files_.emplace_back();
        since_sync_.push_back(now_);
    }
    File& file = files_[now_[name]];
    file.written.clear();
    for (const Bytes part : parts)
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
    now_[to] = now_.at(from);
    now_.erase(from);
    since_sync_.push_back(now_);
}

void CrashingFolder::sync_names() {
    if (crashes())
        throw Crash();
    since_sync_ = {now_};
}

void CrashingFolder::remove(const std::string& name) {
    if (crashes())
        throw Crash();
    now_.erase(name);
    since_sync_.push_back(now_);
}

std::vector<std::string> CrashingFolder::names() const {
    std::vector<std::string> names;
    for (const auto& [name, file] : now_)
        names.push_back(name);
    return names;
}

std::vector<std::uint8_t> CrashingFolder::read(const std::string& name) const {
    return files_[now_.at(name)].written;
}

}  // namespace ddp::test
