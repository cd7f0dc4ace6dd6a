#include "19_checkpoint_failover/state/checkpoints.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "common/data/file.hpp"

namespace ddp {
namespace {

const std::string prefix = "checkpoint-", suffix = ".safetensors", checksum_key = "crc32";
const std::string generation_file = "generation";

std::string hexadecimal(std::uint32_t header, std::uint32_t data) {
    char text[17];
    std::snprintf(text, sizeof text, "%08x%08x", header, data);
    return text;
}

Bytes bytes_of(const std::string& text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// Returns the checksum of what a checkpoint says: texts, and tensors in the order of their names.
// Where a tensor lies in the file does not count, so a checkpoint that Python's safetensors has
// read and written again, in another order, is still whole. The texts contain the checksum; while
// it is computed, its digits are set to zero.
std::string checksum_of(const SafetensorsHeader& header, Bytes data) {
    SafetensorsHeader said{header.tensors, header.metadata};
    said.metadata[checksum_key] = hexadecimal(0, 0);
    std::ranges::sort(said.tensors, {}, &SafetensorsHeader::Entry::name);
    std::uint32_t sum = 0;
    for (auto& tensor : said.tensors) {
        sum = checksum(data.subspan(tensor.begin, tensor.end - tensor.begin), sum);
        tensor.begin = tensor.end = 0;
    }
    return hexadecimal(checksum(bytes_of(encode_safetensors(said))), sum);
}

// Returns the step of the checkpoint with this file name, or nothing if it is no checkpoint's.
std::optional<int> step_of(const std::string& name) {
    int step = 0;
    const char* first = name.data() + std::min(prefix.size(), name.size());
    const auto [end, error] = std::from_chars(first, name.data() + name.size(), step);
    if (error != std::errc() || step < 0 || name != Checkpoints::file_name(step))
        return std::nullopt;
    return step;
}

}  // namespace

std::string Checkpoints::file_name(int step) {
    char digits[16];
    std::snprintf(digits, sizeof digits, "%08d", step);
    return prefix + digits + suffix;
}

std::vector<int> Checkpoints::steps() const {
    std::vector<int> steps;
    for (const std::string& name : folder_.names())
        if (const std::optional<int> step = step_of(name))
            steps.push_back(*step);
    std::ranges::sort(steps, std::ranges::greater());
    return steps;
}

int Checkpoints::newest_generation() const {
    if (std::ranges::count(folder_.names(), generation_file) == 0)
        return 0;
    const std::vector<std::uint8_t> digits = folder_.read(generation_file);
    const auto* first = reinterpret_cast<const char*>(digits.data());
    int generation = 0;
    if (std::from_chars(first, first + digits.size(), generation).ec != std::errc())
        throw std::runtime_error("'" + folder_.path() + "/" + generation_file +
                                 "' holds no number: remove it, if no training runs there.");
    return generation;
}

void Checkpoints::begin_generation(int number) {
    generation_ = number;
    save_atomically(folder_, generation_file, {bytes_of(std::to_string(number))});
    remove_unfinished();  // an earlier generation that wakes up cannot rename it any more
}

void Checkpoints::require_newest_generation() const {
    if (const int newest = newest_generation(); newest > generation_)
        throw std::runtime_error("this is generation " + std::to_string(generation_) +
                                 " of the training, and generation " + std::to_string(newest) +
                                 " writes into '" + folder_.path() +
                                 "' now: this one ends and writes nothing more.");
}

// A generation can be stopped and wake up between any two of these calls, and begin_generation of
// the next one can lie between them. What it has written until then is removed, or it finds out.
// Only where it is stopped between the first look and its write, a late checkpoint appears. That is
// whole and of this training; and nothing is removed for it.
bool Checkpoints::save(int step, SafetensorsHeader header, Bytes data) {
    const std::string text = seal(std::move(header), data);
    const std::string writer = "." + std::to_string(generation_);
    const auto save = [&] {
        require_newest_generation();
        save_atomically(folder_, file_name(step), {bytes_of(text), data}, writer);
        require_newest_generation();
        remove_others(step);
    };
    try {
        save();
        return false;
    } catch (const std::runtime_error&) {
        if (!folder_.make()) {
            require_newest_generation();                            // then that is the reason
            folder_.remove(file_name(step) + writer + unfinished);  // a full disk needs its room
            throw;
        }
    }
    begin_generation(generation_);
    save();  // whoever has removed the folder has not removed the training
    return true;
}

// Removes all checkpoints but the last ones, of which `step` is the newest.
void Checkpoints::remove_others(int step) {
    std::vector<int> others = steps();
    // If the training was resumed from an older checkpoint, newer ones belong to a run that has
    // been abandoned: they are removed.
    std::erase_if(others, [&](int other) { return other == step; });
    const auto older = std::ranges::find_if(others, [&](int other) { return other < step; });
    for (auto other = others.begin(); other != others.end(); ++other)
        if (other < older || other - older >= keep_ - 1)
            folder_.remove(file_name(*other));
    remove_unfinished();
}

void Checkpoints::remove_unfinished() {
    for (const std::string& name : folder_.names())
        if (name.starts_with(prefix) && name.ends_with(unfinished))
            folder_.remove(name);
}

std::optional<Checkpoint> Checkpoints::newest(std::vector<std::string>& errors) const {
    for (const int step : steps())
        try {
            return read_checkpoint(step, folder_.read(file_name(step)), file_name(step));
        } catch (const DataError& error) {
            errors.push_back(error.what());
        }
    return std::nullopt;
}

std::string seal(SafetensorsHeader header, Bytes data) {
    header.metadata[checksum_key] = checksum_of(header, data);
    return encode_safetensors(header);
}

Checkpoint read_checkpoint(int step, std::vector<std::uint8_t> bytes, const std::string& name) {
    Checkpoint checkpoint{step, decode_safetensors(std::move(bytes), name)};
    auto& metadata = checkpoint.file.header.metadata;
    const auto found = metadata.find(checksum_key);
    if (found == metadata.end())
        refuse(name, "has no checksum: this program has not written it.");
    if (found->second != checksum_of(checkpoint.file.header, checkpoint.file.data()))
        refuse(name, "is damaged: its checksum does not match its bytes.");
    metadata.erase(found);  // the rest is the training's
    return checkpoint;
}

}  // namespace ddp
