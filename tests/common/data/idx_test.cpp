#include "common/data/idx.hpp"

#include <map>

#include "tests/common/data/allocation_meter.hpp"
#include "tests/common/data/files.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Dims = std::vector<std::size_t>;

// What a message, the header and the parser's own small objects may take.
constexpr std::size_t overhead = 4096;

std::string complaint(const Bytes& file) {
    return data_error([&] { parse_idx(file, "pictures"); });
}

}  // namespace

TEST_CASE("an IDX file is read with its dimensions, gzipped or not") {
    const Bytes elements = counting(7 * 3 * 5);
    const Bytes plain = idx_file({7, 3, 5}, elements);
    for (const Bytes& file : {plain, gzipped(plain)}) {
        const Idx idx = parse_idx(file, "pictures");
        CHECK(idx.dims == Dims{7, 3, 5});
        CHECK(idx.bytes == elements);
    }
}

TEST_CASE("dimensions are big-endian, of every width, and may be 0") {
    CHECK(parse_idx(idx_file({0x1234}, counting(0x1234)), "").dims == Dims{0x1234});
    CHECK(parse_idx(idx_file({3, 0, 0x01020304}, {}), "").dims == Dims{3, 0, 0x01020304});
    CHECK(parse_idx(idx_file({0x010203}, counting(0x010203)), "").bytes == counting(0x010203));
}

TEST_CASE("an IDX file is read from disk") {
    const TemporaryFolder folder;
    const auto path = folder.write("a.gz", gzipped(idx_file({4, 2}, counting(8))));
    CHECK(read_idx(path).bytes == counting(8));
}

TEST_CASE("paths that are no readable file are refused by name") {
    const TemporaryFolder folder;
    const std::string missing = (folder.path() / "nowhere").string();
    CHECK(data_error([&] { read_idx(missing); }) ==
          "'" + missing + "' was not found: check the path.");
    CHECK(data_error([&] { read_idx(folder.path()); }).find("is a folder") != std::string::npos);
    CHECK(data_error([&] { read_idx("/dev/zero"); }).find("or a device") != std::string::npos);

    const auto huge = folder.write("huge", idx_file({1}, {}));
    std::filesystem::resize_file(huge, max_data_bytes + 1);  // a hole: takes no room on disk
    CHECK(data_error([&] {
              read_idx(huge);
          }).find("has 2147483649 bytes, but at most 2147483648") != std::string::npos);
}

TEST_CASE(
    "a bad IDX file gets one sentence: the file, what was found, what was expected, what to do") {
    const Bytes good = idx_file({2, 3}, counting(6));
    const Bytes good_gz = gzipped(good);
    CHECK(complaint({}) ==
          "'pictures' ends before its magic number is complete: it is truncated, fetch it again.");
    CHECK(complaint(shortened(good, 11)) ==
          "'pictures' ends before its dimension 2 is complete: it is truncated, fetch it again.");
    CHECK(complaint(shortened(good, 17)) ==
          "'pictures' announces 2 x 3 = 6 bytes in its header, but holds at most 5 after it: it is "
          "truncated or damaged, fetch it again.");
    CHECK(complaint(joined(good, {0})) ==
          "'pictures' announces 2 x 3 = 6 bytes in its header, but goes on after them: it is "
          "damaged or something was appended, fetch it again.");
    CHECK(
        complaint({'P', 'K', 3, 4, 0}) ==
        "'pictures' starts with the bytes 50 4b 03 04, but an IDX file starts with 00 00 08 and a "
        "number of dimensions from 1 to 8: it is damaged or no IDX file, fetch it again.");
    CHECK(complaint(with_byte(good, 2, 0x0d)) ==
          "'pictures' holds elements of type 0x0d, but only 0x08, unsigned bytes, is read: fetch "
          "the file again, or convert it to bytes.");
    CHECK(complaint(shortened(good_gz, good_gz.size() - 1)) ==
          "'pictures' ends in the middle of its gzip stream: it is truncated, fetch it again.");
    CHECK(complaint(joined(good_gz, good_gz)) ==
          "'pictures' has " + std::to_string(good_gz.size()) +
              " bytes after its gzip stream, which should be the whole file: fetch the file again, "
              "or decompress it with gunzip.");
    CHECK(complaint(with_bit_flipped(good_gz, 8 * (good_gz.size() - 8))) ==
          "'pictures' is a damaged gzip file (zlib says: incorrect data check): fetch it again.");
}

TEST_CASE("the number of dimensions is at least 1 and at most 8") {
    CHECK(complaint(idx_file({}, {})).find("00 00 08 00") != std::string::npos);
    CHECK(parse_idx(idx_file({1, 1, 1, 1, 1, 1, 1, 2}, {5, 6}), "").dims.size() == 8);
    CHECK(complaint(idx_file({1, 1, 1, 1, 1, 1, 1, 1, 1}, {5})).find("00 00 08 09") !=
          std::string::npos);
}

TEST_CASE("an oversized header is refused before memory is asked for") {
    const std::map<std::string, std::vector<std::uint32_t>> cases = {
        {"announces 4294967295 bytes in its header, more than", {0xffffffff}},
        // Products that wrap around 2^64 to 0 and to 16:
        {"announces 65536 x 65536 x 65536 x 65536 bytes in its header, more than",
         {65536, 65536, 65536, 65536}},
        {"announces 2147483648 x 2147483648 x 4 bytes in its header, more than",
         {0x80000000, 0x80000000, 4}},
        {"announces 2000000000 = 2000000000 bytes in its header, but holds at most", {2000000000}},
    };
    for (const auto& [expected, dims] : cases) {
        const Bytes plain = idx_file(dims, counting(16));
        for (const Bytes& file : {plain, gzipped(plain)}) {
            const std::size_t before = bytes_requested();
            const std::string error = complaint(file);
            const std::size_t asked = bytes_requested() - before;
            CHECK(error.find(expected) != std::string::npos);
            CHECK(asked < overhead);
        }
    }
}

TEST_CASE("a gzip bomb is stopped one byte after what its header announces") {
    const Bytes bomb = gzipped(idx_file({5}, Bytes(50'000'000)));
    const std::size_t before = bytes_requested();
    const std::string error = complaint(bomb);
    const std::size_t asked = bytes_requested() - before;
    CHECK(error.find("announces 5 = 5 bytes in its header, but goes on") != std::string::npos);
    CHECK(asked < overhead);
}

TEST_CASE("the best that deflate can compress is not mistaken for a truncated file") {
    const Bytes zeros(20'000'000);
    const Bytes file = gzipped(idx_file({20'000'000}, zeros));
    REQUIRE(zeros.size() / file.size() > 1000);  // the bound is 1032
    CHECK(parse_idx(file, "").bytes == zeros);
}

TEST_CASE("every truncation and every flipped bit of a header is seen") {
    const Bytes plain = idx_file({6, 4, 5}, counting(120));
    for (std::size_t size = 0; size < plain.size(); size++)
        CHECK(complaint(shortened(plain, size)) != "");
    for (std::size_t bit = 0; bit < 8 * 16; bit++)
        CHECK(complaint(with_bit_flipped(plain, bit)) != "");
}

TEST_CASE("every truncation of a gzipped file is seen, and no flipped bit changes what is read") {
    const Bytes elements = counting(120);
    const Bytes file = gzipped(idx_file({6, 4, 5}, elements));
    for (std::size_t size = 0; size < file.size(); size++)
        CHECK(complaint(shortened(file, size)) != "");
    std::size_t seen = 0;
    for (std::size_t bit = 0; bit < 8 * file.size(); bit++) {
        const Bytes flipped = with_bit_flipped(file, bit);
        const bool refused = complaint(flipped) != "";
        seen += refused;
        if (!refused)  // the header of gzip holds a date and an operating system
            CHECK(parse_idx(flipped, "").bytes == elements);
    }
    CHECK(seen >= 8 * (file.size() - 10));
}

TEST_CASE("mutated IDX files are read consistently or refused, within bounded memory") {
    const Bytes plain = idx_file({6, 4, 5}, counting(120));
    const std::map<std::string, Bytes> seeds = {{"plain", plain}, {"gzipped", gzipped(plain)}};
    for (const auto& [kind, seed] : seeds) {
        std::mt19937 random(20240607);
        std::size_t read = 0, refused = 0;
        for (int round = 0; round < 20000; round++) {
            const Bytes file = mutated(seed, random);
            const std::size_t most = kind == "plain" ? file.size() : 1032 * file.size() + 8 * 1032;
            const std::size_t before = bytes_requested();
            Idx idx;
            const std::string error = data_error([&] { idx = parse_idx(file, "x"); });
            const std::size_t asked = bytes_requested() - before;

            std::size_t product = 1;
            for (const std::size_t dim : idx.dims)
                product *= dim;
            const bool consistent = !error.empty() || product == idx.bytes.size();
            const bool complete = !error.empty() || kind == "gzipped" ||
                                  4 + 4 * idx.dims.size() + product == file.size();
            const bool one_sentence =
                error.empty() || (error.starts_with("'x' ") && error.ends_with("."));
            INFO(kind << " round " << round << ": " << error);
            if (!consistent || !complete || !one_sentence || asked > most + overhead)
                FAIL("asked for " << asked << " bytes, " << most << " allowed");
            (error.empty() ? read : refused)++;
        }
        CHECK(read > 100);  // the mutations must reach both outcomes
        CHECK(refused > 10000);
    }
}

}  // namespace ddp::test
