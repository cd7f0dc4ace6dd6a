#include "common/data/idx.hpp"

#define ZLIB_CONST  // zlib then promises not to write to its input
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <new>

#include "common/data/file.hpp"

namespace ddp {
namespace {

// The bytes of an IDX file, in order, whether the file is compressed or not.
class Source {
  public:
    virtual ~Source() = default;
    // Fills `out` with the next bytes; returns their number, which is less than out.size() only at
    // the end of the file.
    virtual std::size_t read(std::span<std::uint8_t> out) = 0;
    // Returns a number of bytes that the rest of the file cannot exceed.
    virtual std::size_t upper_bound() const = 0;
};

class PlainSource : public Source {
  public:
    explicit PlainSource(std::span<const std::uint8_t> file) : left_(file) {}

    std::size_t read(std::span<std::uint8_t> out) override {
        const std::size_t count = std::min(out.size(), left_.size());
        std::copy_n(left_.begin(), count, out.begin());
        left_ = left_.subspan(count);
        return count;
    }

    std::size_t upper_bound() const override { return left_.size(); }

  private:
    std::span<const std::uint8_t> left_;
};

class GzipSource : public Source {
  public:
    GzipSource(std::span<const std::uint8_t> file, std::string name) : name_(std::move(name)) {
        stream_.next_in = file.data();
        stream_.avail_in = static_cast<uInt>(file.size());
        if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK)  // 16: a gzip header, CRC checked
            throw std::bad_alloc();
    }
    ~GzipSource() override { inflateEnd(&stream_); }
    GzipSource(const GzipSource&) = delete;  // zlib keeps a pointer to stream_
    GzipSource& operator=(const GzipSource&) = delete;

    std::size_t read(std::span<std::uint8_t> out) override {
        stream_.next_out = out.data();
        stream_.avail_out = static_cast<uInt>(out.size());
        while (stream_.avail_out > 0 && !ended_)
            inflate_more();
        return out.size() - stream_.avail_out;
    }

    // Deflate makes at most 258 bytes of two bits.
    std::size_t upper_bound() const override {
        return std::size_t{1032} * stream_.avail_in + pending_window;
    }

  private:
    // Bytes that zlib may have read and decoded, but not yet returned.
    static constexpr std::size_t pending_window = 1032 * 8;

    void inflate_more() {
        const int status = inflate(&stream_, Z_NO_FLUSH);
        if (status == Z_STREAM_END) {
            ended_ = true;
            if (stream_.avail_in > 0)
                refuse(name_, "has " + std::to_string(stream_.avail_in) +
                                  " bytes after its gzip stream, which should be the whole file: "
                                  "fetch the file again, or decompress it with gunzip.");
        } else if (status == Z_BUF_ERROR) {
            refuse(name_,
                   "ends in the middle of its gzip stream: it is truncated, fetch it again.");
        } else if (status == Z_MEM_ERROR) {
            throw std::bad_alloc();
        } else if (status != Z_OK) {
            refuse(name_, std::string("is a damaged gzip file (zlib says: ") +
                              (stream_.msg ? stream_.msg : "a preset dictionary is missing") +
                              "): fetch it again.");
        }
    }

    std::string name_;
    z_stream stream_{};
    bool ended_ = false;
};

std::unique_ptr<Source> open(std::span<const std::uint8_t> file, const std::string& name) {
    if (file.size() > max_data_bytes)
        refuse(name, "is larger than the " + std::to_string(max_data_bytes) +
                         " bytes that are read into memory: check the path.");
    const bool gzipped = file.size() >= 2 && file[0] == 0x1f && file[1] == 0x8b;
    if (gzipped)
        return std::make_unique<GzipSource>(file, name);
    return std::make_unique<PlainSource>(file);
}

std::string in_hex(std::span<const std::uint8_t> bytes) {
    std::string text;
    for (const std::uint8_t byte : bytes) {
        char digits[4];
        std::snprintf(digits, sizeof digits, "%02x ", byte);
        text += digits;
    }
    return text.substr(0, text.size() - 1);
}

// Reads four bytes of the header, which error messages call `part`.
std::array<std::uint8_t, 4> read_four(Source& source, const std::string& name,
                                      const std::string& part) {
    std::array<std::uint8_t, 4> bytes;
    if (source.read(bytes) < bytes.size())
        refuse(name, "ends before its " + part + " is complete: it is truncated, fetch it again.");
    return bytes;
}

// Checks the first four bytes and returns the number of dimensions.
std::size_t read_magic(Source& source, const std::string& name) {
    const std::array<std::uint8_t, 4> magic = read_four(source, name, "magic number");
    constexpr int max_dims =
        8;  // enough for any data set; keeps the message about a damaged header short
    if (magic[0] != 0 || magic[1] != 0 || magic[3] == 0 || magic[3] > max_dims)
        refuse(name, "starts with the bytes " + in_hex(magic) +
                         ", but an IDX file starts with 00 00 08 and a number of dimensions from 1 "
                         "to 8: it is damaged or no IDX file, fetch it again.");
    if (magic[2] != 0x08)
        refuse(name,
               "holds elements of type 0x" + in_hex(std::span(magic).subspan(2, 1)) +
                   ", but only 0x08, unsigned bytes, is read: fetch the file again, or convert "
                   "it to bytes.");
    return magic[3];
}

std::vector<std::size_t> read_dims(Source& source, const std::string& name, std::size_t count) {
    std::vector<std::size_t> dims(count);
    for (std::size_t d = 0; d < count; d++) {
        const auto bytes = read_four(source, name, "dimension " + std::to_string(d + 1));
        dims[d] = std::size_t{bytes[0]} << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
    }
    return dims;
}

std::string joined(const std::vector<std::size_t>& dims) {
    std::string text = std::to_string(dims[0]);
    for (std::size_t d = 1; d < dims.size(); d++)
        text += " x " + std::to_string(dims[d]);
    return text;
}

// Returns the product of dims. Throws DataError if it exceeds max_data_bytes, and so before it
// overflows.
std::size_t element_count(const std::vector<std::size_t>& dims, const std::string& name) {
    std::size_t count = 1;
    for (const std::size_t dim : dims) {
        if (dim != 0 && count > max_data_bytes / dim)
            refuse(name, "announces " + joined(dims) + " bytes in its header, more than the " +
                             std::to_string(max_data_bytes) +
                             " that are read into memory: the header is damaged, fetch the file "
                             "again.");
        count *= dim;
    }
    return count;
}

}  // namespace

Idx parse_idx(std::span<const std::uint8_t> file, const std::string& name) {
    const std::unique_ptr<Source> source = open(file, name);
    Idx idx;
    idx.dims = read_dims(*source, name, read_magic(*source, name));
    const std::size_t count = element_count(idx.dims, name);
    const std::string announced = "announces " + joined(idx.dims) + " = " + std::to_string(count) +
                                  " bytes in its header, but ";
    const std::size_t bound = source->upper_bound();
    if (count > bound)  // found before any memory is allocated
        refuse(name, announced + "holds at most " + std::to_string(bound) +
                         " after it: it is truncated or damaged, fetch it again.");

    idx.bytes.resize(count);
    const std::size_t found = source->read(idx.bytes);
    if (found < count)
        refuse(name, announced + "holds only " + std::to_string(found) +
                         " after it: it is truncated or damaged, fetch it again.");
    // One more read: it finds extra bytes, and it brings a gzip stream to its checksum at the end.
    std::uint8_t extra = 0;
    if (source->read({&extra, 1}) > 0)
        refuse(name, announced +
                         "goes on after them: it is damaged or something was appended, "
                         "fetch it again.");
    return idx;
}

Idx read_idx(const std::filesystem::path& path) {
    return parse_idx(read_file(path), path.string());
}

}  // namespace ddp
