#include "common/data/file.hpp"

#define ZLIB_CONST  // zlib then promises not to write to its input
#include <zlib.h>

#include <fstream>
#include <system_error>

namespace ddp {

std::string printable(std::string text) {
    constexpr std::size_t most = 600;
    if (text.size() > most)
        text = text.substr(0, most) + " ...";
    for (char& letter : text)
        if (const auto code = static_cast<unsigned char>(letter); code < ' ' || code == 0x7f)
            letter = '?';
    return text;
}

void refuse(const std::string& name, const std::string& what) {
    throw DataError(printable("'" + name + "' " + what));
}

std::vector<std::uint8_t> read_file(const std::filesystem::path& path) {
    const std::string name = path.string();
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status))
        refuse(name, "was not found: check the path.");
    if (!std::filesystem::is_regular_file(status))
        refuse(name, "is a folder or a device, but a file was expected: check the path.");
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    std::ifstream stream(path, std::ios::binary);
    if (error || !stream)
        refuse(name, "exists but cannot be opened: check its permissions.");
    if (size > max_data_bytes)
        refuse(name, "has " + std::to_string(size) + " bytes, but at most " +
                         std::to_string(max_data_bytes) + " are read into memory: check the path.");

    std::vector<std::uint8_t> bytes(size);
    stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
    if (static_cast<std::uintmax_t>(stream.gcount()) != size)
        refuse(name, "could be read up to byte " + std::to_string(stream.gcount()) + " of " +
                         std::to_string(size) +
                         " only: check the disk, and that nothing is writing to the file.");
    return bytes;
}

std::uint32_t checksum(std::span<const std::uint8_t> bytes, std::uint32_t before) {
    if (bytes.empty())
        return before;  // zlib would begin anew
    return static_cast<std::uint32_t>(crc32(before, bytes.data(), static_cast<uInt>(bytes.size())));
}

}  // namespace ddp
