#include "tests/common/data/files.hpp"

#include <stdlib.h>
#include <zlib.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace ddp::test {

Bytes idx_file(const std::vector<std::uint32_t>& dims, const Bytes& elements) {
    Bytes file = {0, 0, 8, static_cast<std::uint8_t>(dims.size())};
    for (const std::uint32_t dim : dims)
        for (const int shift : {24, 16, 8, 0})
            file.push_back(static_cast<std::uint8_t>(dim >> shift));
    return joined(file, elements);
}

Bytes counting(std::size_t count) {
    Bytes bytes(count);
    for (std::size_t i = 0; i < count; i++)
        bytes[i] = static_cast<std::uint8_t>(i % 251);
    return bytes;
}

Bytes gzipped(const Bytes& bytes) {
    z_stream stream{};
    if (deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        throw std::runtime_error("zlib did not start");
    Bytes out(deflateBound(&stream, bytes.size()));
    stream.next_in = const_cast<Bytef*>(bytes.data());
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = out.data();
    stream.avail_out = static_cast<uInt>(out.size());
    const int status = deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    if (status != Z_STREAM_END)
        throw std::runtime_error("zlib did not finish");
    return out;
}

Bytes joined(Bytes a, const Bytes& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

Bytes shortened(Bytes bytes, std::size_t to) {
    bytes.resize(std::min(to, bytes.size()));
    return bytes;
}

Bytes with_bit_flipped(Bytes bytes, std::size_t bit) {
    bytes.at(bit / 8) ^= static_cast<std::uint8_t>(1 << bit % 8);
    return bytes;
}

Bytes with_byte(Bytes bytes, std::size_t at, std::uint8_t value) {
    bytes.at(at) = value;
    return bytes;
}

Bytes mutated(Bytes bytes, std::mt19937& random) {
    for (std::size_t edits = 1 + random() % 4; edits > 0 && !bytes.empty(); edits--) {
        const std::size_t near_front = random() % std::min<std::size_t>(bytes.size(), 24);
        const std::size_t anywhere = random() % bytes.size();
        switch (random() % 6) {
            case 0:
                bytes = with_bit_flipped(std::move(bytes), anywhere * 8 + random() % 8);
                break;
            case 1:
                bytes[anywhere] = static_cast<std::uint8_t>(random());
                break;
            case 2:
                bytes[near_front] = static_cast<std::uint8_t>(random());
                break;
            case 3:
                bytes.resize(anywhere);
                break;
            case 4:
                bytes = joined(bytes, Bytes(bytes.begin() + anywhere, bytes.end()));
                break;
            case 5:
                bytes.resize(bytes.size() + 1 + random() % 9, random() % 256);
                break;
        }
    }
    return bytes;
}

std::string data_error(const std::function<void()>& act) {
    try {
        act();
    } catch (const DataError& error) {
        return error.what();
    }
    return "";
}

TemporaryFolder::TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "ddp_data_XXXXXX").string();
    if (!mkdtemp(name.data()))
        throw std::runtime_error("cannot make a temporary folder");
    path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;  // nothing better to do in a destructor
    std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TemporaryFolder::write(const std::string& name,
                                             std::span<const std::uint8_t> bytes) const {
    const std::filesystem::path path = path_ / name;
    std::ofstream stream(path, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
    if (!stream)
        throw std::runtime_error("cannot write " + path.string());
    return path;
}

}  // namespace ddp::test
