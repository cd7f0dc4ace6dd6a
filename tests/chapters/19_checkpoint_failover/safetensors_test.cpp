// The file format: what is written is what the format's description says, and nothing else is read.
#include "19_checkpoint_failover/safetensors.hpp"

#include <cstring>

#include "tests/common/data/files.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

Bytes file_of(const std::string& header, std::size_t data_bytes) {
    Bytes bytes;
    for (std::size_t i = 0; i < 8; i++)
        bytes.push_back(static_cast<std::uint8_t>(header.size() >> (8 * i)));
    bytes.insert(bytes.end(), header.begin(), header.end());
    return joined(bytes, counting(data_bytes));
}

std::string error_of(const std::string& header, std::size_t data_bytes) {
    return data_error([&] { decode_safetensors(file_of(header, data_bytes), "model"); });
}

std::string tensor(const std::string& shape, const std::string& offsets,
                   const std::string& type = "F32") {
    return "{\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

SafetensorsHeader example_header() {
    SafetensorsHeader header;
    header.add("linear1.weight", {3, 5});
    header.add("scalar", {});
    header.add("none", {0, 7});
    header.add("bias \"quoted\" \xc3\xa4", {2});
    header.metadata = {{"step", "120"}, {"random", std::string(300, '7')}};
    return header;
}

}  // namespace

TEST_CASE("safetensors: the bytes of a small file, as the format describes them") {
    SafetensorsHeader header;
    header.add("b", {2, 1});
    header.metadata["k"] = "v";
    const std::string text =
        "{\"__metadata__\":{\"k\":\"v\"},\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],"
        "\"data_offsets\":[0,8]}}";
    const std::string encoded = encode_safetensors(header);
    REQUIRE(encoded.size() % 8 == 0);
    REQUIRE(encoded.substr(0, 8) == std::string("\x58\0\0\0\0\0\0\0", 8));
    REQUIRE(encoded.substr(8) == text + std::string(0x58 - text.size(), ' '));
}

TEST_CASE("safetensors: what was written is read, to the bit") {
    const SafetensorsHeader header = example_header();
    const std::string text = encode_safetensors(header);
    const Bytes data = counting(header.data_bytes());
    const Safetensors file = decode_safetensors(joined({text.begin(), text.end()}, data), "f");
    REQUIRE(file.header == header);
    REQUIRE(file.data().size() == (15 + 1 + 0 + 2) * 4);
    REQUIRE(std::equal(data.begin(), data.end(), file.data().begin()));
    const float expected = [&] {
        float value;
        std::memcpy(&value, data.data() + 60, sizeof value);
        return value;
    }();
    REQUIRE(file.values(*file.find("scalar")) == std::vector<float>{expected});
    REQUIRE(file.values(*file.find("none")).empty());
    REQUIRE(file.find("linear1") == nullptr);
}

TEST_CASE("safetensors: a name is also found with 'module.' before it") {
    SafetensorsHeader header;
    header.add("module.linear1.weight", {1});
    const std::string text = encode_safetensors(header);
    const Safetensors file =
        decode_safetensors(joined({text.begin(), text.end()}, counting(4)), "f");
    REQUIRE(file.find("linear1.weight") == &file.header.tensors[0]);
    REQUIRE(file.find("module.linear1.weight") == &file.header.tensors[0]);
}

TEST_CASE("safetensors: other programs' files: any order, any space, other types, more keys") {
    const std::string header =
        " {\n \"z\": " + tensor("[2]", "[8, 24]", "F64") +
        ",\n \"a\": " + tensor("[4,1]", "[0,8]", "BF16").insert(1, "\"more\":[1],") + "\t}  ";
    const Safetensors file = decode_safetensors(file_of(header, 24), "f");
    REQUIRE(file.header.tensors[0].name == "a");
    REQUIRE(file.header.tensors[1].type == "F64");
}

TEST_CASE("safetensors: everything else is refused in a sentence that names it") {
    const std::string f = "'model' is not a whole safetensors file: ";
    const auto whole = [](const std::string& a) { return "{\"a\":" + a + "}"; };
    REQUIRE(error_of(whole(tensor("[2]", "[0,8]")), 8) == "");
    REQUIRE(error_of(whole(tensor("[2]", "[0,8]")), 9) ==
            f + "its tensors have 8 bytes, and 9 are there.");
    REQUIRE(error_of(whole(tensor("[2]", "[0,8]")), 7) ==
            f + "its tensors have 8 bytes, and 7 are there.");
    REQUIRE(error_of(whole(tensor("[3]", "[0,8]")), 8) ==
            f + "'a' should have 12 bytes and has 8.");
    REQUIRE(error_of(whole(tensor("[2]", "[8,0]")), 8) == f + "'a' ends before it begins.");
    REQUIRE(error_of(whole(tensor("[2]", "[0,8,9]")), 8) == f + "'a' ends before it begins.");
    REQUIRE(error_of(whole(tensor("[2]", "[4,12]")), 12) ==
            f + "'a' should begin at byte 0 of the data and begins at 4.");
    REQUIRE(error_of("{\"a\":" + tensor("[2]", "[0,8]") + ",\"b\":" + tensor("[1]", "[4,8]") + "}",
                     8) == f + "'b' should begin at byte 8 of the data and begins at 4.");
    REQUIRE(error_of("{\"a\":" + tensor("[1]", "[0,4]") + ",\"a\":" + tensor("[1]", "[0,4]") + "}",
                     4) == f + "'a' comes twice in its header.");
    REQUIRE(error_of(whole(tensor("[-2]", "[0,8]")), 8) ==
            f + "the shape of 'a' are not whole numbers.");
    REQUIRE(error_of(whole(tensor("[2.5]", "[0,10]")), 10) ==
            f + "the shape of 'a' are not whole numbers.");
    REQUIRE(error_of(whole(tensor("[4294967296,4294967296,4294967296]", "[0,0]")), 0) ==
            f + "'a' is larger than memory can be.");
    REQUIRE(error_of(whole(tensor("[2]", "[0,8]", "F7")), 8) ==
            f + "'a' has no dtype that is known here.");
    REQUIRE(error_of(whole("7"), 0) == f + "'a' has no data_offsets.");
    REQUIRE(error_of("{\"__metadata__\":{\"a\":1}}", 0) == f + "its metadata 'a' is not a text.");
    REQUIRE(error_of("{\"__metadata__\":[]}", 0) == f + "its metadata is not an object.");
    REQUIRE(error_of("[]", 0) == f + "its header is not a JSON object.");
    REQUIRE(error_of("{\"a\":", 0) == f + "its header is not JSON.");
    REQUIRE(error_of("{\"\xff\":1}", 0) == f + "its header is not JSON.");
    REQUIRE(error_of(std::string(100'000, '['), 0) == f + "its header is nested too deeply.");
    REQUIRE(data_error([] {
                decode_safetensors({1, 2, 3}, "model");
            }) == f + "it has 3 bytes, and the length of its header alone takes 8.");
    REQUIRE(data_error([] { decode_safetensors(Bytes(8, 255), "model"); }) ==
            f + "its header should have 18446744073709551615 bytes, and the whole file has 8.");
}

// A damaged file is either refused or still has all tensors within it.
TEST_CASE("safetensors: damaged files never do harm") {
    const SafetensorsHeader header = example_header();
    const std::string text = encode_safetensors(header);
    const Bytes good = joined({text.begin(), text.end()}, counting(header.data_bytes()));
    std::mt19937 random(15);
    int refused = 0;
    for (int i = 0; i < 4'000; i++) {
        // Most edits where the format is, not in the long text.
        Bytes bytes = mutated(good, random);
        if (random() % 2 == 0 && bytes.size() > 400)
            bytes[bytes.size() - 1 - random() % 400] = static_cast<std::uint8_t>(random());
        refused += data_error([&] {
                       const Safetensors file = decode_safetensors(bytes, "f");
                       for (const auto& tensor : file.header.tensors)
                           REQUIRE(tensor.end <= file.data().size());
                   }) != "";
    }
    REQUIRE(refused > 2'000);
}

}  // namespace ddp::test
