//     8 bytes    length of the header, little-endian
//     header     {"__metadata__": {"step": "50", ...},
//                 "linear1.weight": {"dtype": "F32", "shape": [256, 784],
//                                    "data_offsets": [0, 802816]}, ...}
//     data       the tensors, end to end; data_offsets count from here
//
// The reader trusts no number in the file. It checks, in this order:
//     1. the length    fits into the file
//     2. the header    is JSON, an object, and no name comes twice in it
//     3. each tensor   has a known type, and as many bytes as its shape and type need
//     4. all tensors   follow each other without a gap, up to the end of the file
#include "19_checkpoint_failover/safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "common/data/file.hpp"

namespace ddp {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t length_bytes = 8;
constexpr std::size_t max_header_bytes = 100'000'000;  // the limit of the format's own reader
const std::string metadata_key = "__metadata__";

// The element types of the format and their sizes. Our checkpoints have F32 only, but a file of
// another program may have any of them.
const std::map<std::string, std::size_t> bytes_of_type{
    {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
    {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
    {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};

// Reads one file's header. All of its functions throw DataError.
class Reader {
  public:
    Reader(const std::vector<std::uint8_t>& bytes, const std::string& name)
        : bytes_(bytes), name_(name) {}

    // Returns the header, with the tensors in the order of their bytes, and sets `data_begin` to
    // the first byte of the data.
    SafetensorsHeader header(std::size_t& data_begin) {
        // 1. and 2.: after these lines there is an object of JSON, with any content.
        data_begin = length_bytes + header_length();
        const Json json = parse(data_begin);
        // 3. Everything but the metadata is a tensor.
        SafetensorsHeader header;
        for (const auto& [key, value] : json.items())
            if (key == metadata_key)
                header.metadata = metadata(value);
            else
                header.tensors.push_back(entry(key, value));
        // 4. The names may be in any order; only the order of the bytes shows gaps. Empty tensors
        // share their first byte with the next one, so the end counts as well.
        std::ranges::stable_sort(header.tensors, {}, [](const auto& tensor) {
            return std::pair(tensor.begin, tensor.end);
        });
        require_no_gaps(header, bytes_.size() - data_begin);
        return header;
    }

  private:
    // Throws the error of this file; `how` completes its sentence.
    [[noreturn]] void damaged(const std::string& how) const {
        refuse(name_, "is not a whole safetensors file: " + how + ".");
    }

    // 1. The length: eight bytes, the lowest first. A damaged one may be huge, so it is compared
    // before anything is allocated.
    std::size_t header_length() const {
        if (bytes_.size() < length_bytes)
            damaged("it has " + std::to_string(bytes_.size()) +
                    " bytes, and the length of its header alone takes 8");
        // Byte by byte, so that the order of bytes on this machine does not matter.
        std::uint64_t length = 0;
        for (std::size_t i = length_bytes; i-- > 0;)
            length = length << 8 | bytes_[i];
        if (length > max_header_bytes || length > bytes_.size() - length_bytes)
            damaged("its header should have " + std::to_string(length) +
                    " bytes, and the whole file has " + std::to_string(bytes_.size()));
        return length;
    }

    // 2. The header. JSON's own rules allow a name to come twice, and readers disagree about which
    // one counts. So the parser reports every key as it reads it, and a second one with the same
    // name in the same object is an error. `names` has one set for each object that is open.
    Json parse(std::size_t end) const {
        std::vector<std::set<std::string>> names;
        std::string twice;
        const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
            if (depth > 3)  // deeper than any entry of a tensor
                damaged("its header is nested too deeply");
            if (event == Json::parse_event_t::object_start)
                names.emplace_back();
            if (event == Json::parse_event_t::object_end)
                names.pop_back();
            if (event == Json::parse_event_t::key &&
                !names.back().insert(value.get<std::string>()).second)
                twice = value.get<std::string>();
            return true;
        };
        Json json;
        const auto first = bytes_.begin() + length_bytes;
        const auto last = bytes_.begin() + static_cast<std::ptrdiff_t>(end);
        if (std::find(first, last, 0) != last)  // where the library would stop reading
            damaged("its header is not JSON");
        try {
            json = Json::parse(first, last, watch);
        } catch (const Json::exception&) {  // DataError is none, and passes
            damaged("its header is not JSON");
        }
        if (!json.is_object())
            damaged("its header is not a JSON object");
        if (!twice.empty())
            damaged("'" + twice + "' comes twice in its header");
        return json;
    }

    // Returns the metadata, whose values must be texts.
    std::map<std::string, std::string> metadata(const Json& value) const {
        std::map<std::string, std::string> texts;
        if (!value.is_object())
            damaged("its metadata is not an object");
        for (const auto& [key, text] : value.items()) {
            if (!text.is_string())
                damaged("its metadata '" + key + "' is not a text");
            texts[key] = text.get<std::string>();
        }
        return texts;
    }

    // Returns the numbers of a tensor's "shape" or "data_offsets".
    std::vector<std::size_t> numbers(const std::string& tensor, const Json& value,
                                     const char* what) const {
        std::vector<std::size_t> all;
        if (!value.is_object() || !value.contains(what) || !value[what].is_array())
            damaged("'" + tensor + "' has no " + what);
        for (const Json& number : value[what]) {
            if (!number.is_number_unsigned())  // neither negative nor a fraction
                damaged("the " + std::string(what) + " of '" + tensor + "' are not whole numbers");
            all.push_back(number.get<std::size_t>());
        }
        return all;
    }

    // 3. One tensor. Its offsets must match what its shape and type need.
    SafetensorsHeader::Entry entry(const std::string& tensor, const Json& value) const {
        const std::vector<std::size_t> offsets = numbers(tensor, value, "data_offsets");
        SafetensorsHeader::Entry entry{tensor, numbers(tensor, value, "shape"), "", 0, 0};
        // A type that is not known here has no size that could be checked.
        if (!value.contains("dtype") || !value["dtype"].is_string() ||
            !bytes_of_type.contains(value["dtype"].get<std::string>()))
            damaged("'" + tensor + "' has no dtype that is known here");
        entry.type = value["dtype"].get<std::string>();
        if (offsets.size() != 2 || offsets[0] > offsets[1])
            damaged("'" + tensor + "' ends before it begins");
        entry.begin = offsets[0];
        entry.end = offsets[1];
        // A product of dimensions may overflow, and would then agree with a small file.
        std::size_t bytes = bytes_of_type.at(entry.type);
        for (const std::size_t dim : entry.shape)
            if (__builtin_mul_overflow(bytes, dim, &bytes))
                damaged("'" + tensor + "' is larger than memory can be");
        if (bytes != entry.end - entry.begin)
            damaged("'" + tensor + "' should have " + std::to_string(bytes) + " bytes and has " +
                    std::to_string(entry.end - entry.begin));
        return entry;
    }

    // 4. All tensors, in the order of their bytes: each begins where the one before it ends. So no
    // two share bytes, and no bytes are left over.
    void require_no_gaps(const SafetensorsHeader& header, std::size_t data_bytes) const {
        std::size_t end = 0;
        for (const auto& tensor : header.tensors) {
            if (tensor.begin != end)
                damaged("'" + tensor.name + "' should begin at byte " + std::to_string(end) +
                        " of the data and begins at " + std::to_string(tensor.begin));
            end = tensor.end;
        }
        if (end != data_bytes)
            damaged("its tensors have " + std::to_string(end) + " bytes, and " +
                    std::to_string(data_bytes) + " are there");
    }

    const std::vector<std::uint8_t>& bytes_;
    const std::string& name_;
};

}  // namespace

void SafetensorsHeader::add(std::string name, std::vector<std::size_t> shape) {
    std::size_t bytes = sizeof(float);
    for (const std::size_t dim : shape)
        bytes *= dim;
    // Directly after the previous tensor: the format allows no gaps.
    const std::size_t begin = data_bytes();
    tensors.push_back({std::move(name), std::move(shape), "F32", begin, begin + bytes});
}

std::string encode_safetensors(const SafetensorsHeader& header) {
    // ordered_json keeps the order of the tensors, which is that of their bytes.
    Json json = Json::object();
    if (!header.metadata.empty())
        json[metadata_key] = header.metadata;
    for (const auto& tensor : header.tensors)
        json[tensor.name] = {{"dtype", tensor.type},
                             {"shape", tensor.shape},
                             {"data_offsets", {tensor.begin, tensor.end}}};
    // Spaces at the end of JSON mean nothing, and bring the data to a multiple of 8 bytes.
    std::string text = json.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    std::string length;
    for (std::size_t i = 0; i < length_bytes; i++)
        length += static_cast<char>(text.size() >> (8 * i));
    return length + text;
}

Safetensors decode_safetensors(std::vector<std::uint8_t> bytes, const std::string& name) {
    // Only the header is decoded. The tensors stay where they are, in `bytes`.
    Safetensors file;
    file.header = Reader(bytes, name).header(file.data_begin);
    file.bytes = std::move(bytes);
    return file;
}

const SafetensorsHeader::Entry* Safetensors::find(const std::string& name) const {
    // PyTorch's DistributedDataParallel puts "module." before all names.
    for (const std::string& wanted : {name, "module." + name}) {
        const auto found =
            std::ranges::find(header.tensors, wanted, &SafetensorsHeader::Entry::name);
        if (found != header.tensors.end())
            return &*found;
    }
    return nullptr;
}

std::vector<float> Safetensors::values(const SafetensorsHeader::Entry& entry) const {
    // The tensor need not be aligned for floats in `bytes`: copy it.
    std::vector<float> values((entry.end - entry.begin) / sizeof(float));
    if (!values.empty())
        std::memcpy(values.data(), bytes.data() + data_begin + entry.begin,
                    values.size() * sizeof(float));
    return values;
}

}  // namespace ddp
