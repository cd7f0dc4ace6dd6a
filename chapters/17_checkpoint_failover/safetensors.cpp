#include "17_checkpoint_failover/safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "common/data/file.hpp"

namespace ddp {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t length_bytes = 8;
constexpr std::size_t most_header_bytes = 100'000'000;  // as the format's own reader has it
const std::string metadata_key = "__metadata__";

const std::map<std::string, std::size_t> bytes_of_type{
    {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
    {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
    {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};

// One reading of one file.
class Reader {
  public:
    Reader(const std::vector<std::uint8_t>& bytes, const std::string& name)
        : bytes_(bytes), name_(name) {}

    SafetensorsHeader header(std::size_t& data_begin) {
        data_begin = length_bytes + header_length();
        const Json json = parse(data_begin);
        SafetensorsHeader header;
        for (const auto& [key, value] : json.items())
            if (key == metadata_key)
                header.metadata = metadata(value);
            else
                header.tensors.push_back(entry(key, value));
        std::ranges::stable_sort(header.tensors, {}, [](const auto& tensor) {
            return std::pair(tensor.begin, tensor.end);
        });
        require_no_gaps(header, bytes_.size() - data_begin);
        return header;
    }

  private:
    [[noreturn]] void damaged(const std::string& how) const {
        refuse(name_, "is no whole safetensors file: " + how + ".");
    }

    std::size_t header_length() const {
        if (bytes_.size() < length_bytes)
            damaged("it has " + std::to_string(bytes_.size()) +
                    " bytes, and the length of its header alone takes 8");
        std::uint64_t length = 0;
        for (std::size_t i = length_bytes; i-- > 0;)
            length = length << 8 | bytes_[i];
        if (length > most_header_bytes || length > bytes_.size() - length_bytes)
            damaged("its header should have " + std::to_string(length) +
                    " bytes, and the whole file has " + std::to_string(bytes_.size()));
        return length;
    }

    // JSON's own rules let a name stand twice, and the last one counts: readers would disagree.
    Json parse(std::size_t end) const {
        std::vector<std::set<std::string>> names;
        std::string twice;
        const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
            if (depth > 3)
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
        try {
            json = Json::parse(bytes_.begin() + length_bytes,
                               bytes_.begin() + static_cast<std::ptrdiff_t>(end), watch);
        } catch (const Json::exception&) {
            damaged("its header is not JSON");
        }
        if (!json.is_object())
            damaged("its header is not a JSON object");
        if (!twice.empty())
            damaged("'" + twice + "' stands in its header twice");
        return json;
    }

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

    std::vector<std::size_t> numbers(const std::string& tensor, const Json& value,
                                     const char* what) const {
        std::vector<std::size_t> all;
        if (!value.is_object() || !value.contains(what) || !value[what].is_array())
            damaged("'" + tensor + "' has no " + what);
        for (const Json& number : value[what]) {
            if (!number.is_number_unsigned())
                damaged("the " + std::string(what) + " of '" + tensor + "' are no whole numbers");
            all.push_back(number.get<std::size_t>());
        }
        return all;
    }

    SafetensorsHeader::Entry entry(const std::string& tensor, const Json& value) const {
        const std::vector<std::size_t> offsets = numbers(tensor, value, "data_offsets");
        SafetensorsHeader::Entry entry{tensor, numbers(tensor, value, "shape"), "", 0, 0};
        if (!value.contains("dtype") || !value["dtype"].is_string() ||
            !bytes_of_type.contains(value["dtype"].get<std::string>()))
            damaged("'" + tensor + "' has no dtype that is known here");
        entry.type = value["dtype"].get<std::string>();
        if (offsets.size() != 2 || offsets[0] > offsets[1])
            damaged("'" + tensor + "' ends before it begins");
        entry.begin = offsets[0];
        entry.end = offsets[1];
        std::size_t bytes = bytes_of_type.at(entry.type);
        for (const std::size_t dim : entry.shape)
            if (__builtin_mul_overflow(bytes, dim, &bytes))
                damaged("'" + tensor + "' is larger than memory can be");
        if (bytes != entry.end - entry.begin)
            damaged("'" + tensor + "' should have " + std::to_string(bytes) + " bytes and has " +
                    std::to_string(entry.end - entry.begin));
        return entry;
    }

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
    const std::size_t begin = data_bytes();
    tensors.push_back({std::move(name), std::move(shape), "F32", begin, begin + bytes});
}

std::string encode_safetensors(const SafetensorsHeader& header) {
    Json json = Json::object();
    if (!header.metadata.empty())
        json[metadata_key] = header.metadata;
    for (const auto& tensor : header.tensors)
        json[tensor.name] = {{"dtype", tensor.type},
                             {"shape", tensor.shape},
                             {"data_offsets", {tensor.begin, tensor.end}}};
    std::string text = json.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    std::string length;
    for (std::size_t i = 0; i < length_bytes; i++)
        length += static_cast<char>(text.size() >> (8 * i));
    return length + text;
}

Safetensors decode_safetensors(std::vector<std::uint8_t> bytes, const std::string& name) {
    Safetensors file;
    file.header = Reader(bytes, name).header(file.data_begin);
    file.bytes = std::move(bytes);
    return file;
}

const SafetensorsHeader::Entry* Safetensors::find(const std::string& name) const {
    for (const std::string& wanted : {name, "module." + name}) {
        const auto found =
            std::ranges::find(header.tensors, wanted, &SafetensorsHeader::Entry::name);
        if (found != header.tensors.end())
            return &*found;
    }
    return nullptr;
}

std::vector<float> Safetensors::values(const SafetensorsHeader::Entry& entry) const {
    std::vector<float> values((entry.end - entry.begin) / sizeof(float));
    if (!values.empty())
        std::memcpy(values.data(), bytes.data() + data_begin + entry.begin,
                    values.size() * sizeof(float));
    return values;
}

}  // namespace ddp
