// A plan as a text, from rank 0 to the other ranks: the number of buckets; then for each bucket its
// type and the number of its gradients, and for each gradient its index and its elements. For the
// eight layers of 512:
//
//     bucket_plan 2
//     float 2  15 512  14 262144
//     float 14  13 512  12 262144  11 512 ...
#include "14_buckets/plan_text.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <stdexcept>

namespace ddp {
namespace {

// Reads the text word by word. Throws std::runtime_error at a word that does not fit.
class PlanReader {
  public:
    explicit PlanReader(const std::string& text) : text_(text) {}

    std::string word() {
        std::string word;
        if (!(text_ >> word))
            throw_damaged();
        return word;
    }
    std::size_t number() {
        const std::string digits = word();
        std::size_t value = 0;
        const char* const end = digits.data() + digits.size();
        if (std::from_chars(digits.data(), end, value) != std::from_chars_result{end, {}})
            throw_damaged();
        return value;
    }
    ElementType type() {
        const std::optional<ElementType> type = element_type_named(word());
        if (!type)
            throw_damaged();
        return *type;
    }
    void expect_end() {
        if (std::string rest; text_ >> rest)
            throw_damaged();
    }
    [[noreturn]] static void throw_damaged() {
        throw std::runtime_error(
            "the bucket plan from rank 0 is damaged: all ranks must run the same program");
    }

  private:
    std::istringstream text_;
};

// The text is sound, but the ranks have built different networks.
[[noreturn]] void throw_other_network(const std::string& what) {
    throw std::runtime_error("the bucket plan from rank 0 " + what +
                             ": build the same network on every rank");
}

std::string to_string(std::size_t elements, ElementType type) {
    return std::to_string(elements) + " elements of " + name_of(type);
}

// Compares what rank 0 has sent about a gradient with this rank's own.
void require_same(std::size_t elements, ElementType type, const GradientSize& mine) {
    if (elements != mine.elements || type != mine.type)
        throw_other_network("has " + to_string(elements, type) + " for '" + mine.name +
                            "', which has " + to_string(mine.elements, mine.type) + " here");
}

// Reads one bucket, and compares each gradient's size with this rank's own: a plan for another
// network must not be used.
std::vector<std::size_t> read_bucket(PlanReader& reader, const GradientSizes& gradients,
                                     std::vector<bool>& seen) {
    const ElementType type = reader.type();
    const std::size_t count = reader.number();
    std::vector<std::size_t> bucket;
    while (bucket.size() < count) {
        // For each gradient: which one, and how large it is on rank 0.
        const std::size_t i = reader.number();
        const std::size_t elements = reader.number();
        if (i >= gradients.size())
            throw_other_network("names gradient " + std::to_string(i) + ", and this rank has " +
                                std::to_string(gradients.size()));
        if (seen[i])
            throw_other_network("has '" + gradients[i].name + "' twice");
        require_same(elements, type, gradients[i]);
        seen[i] = true;
        bucket.push_back(i);
    }
    if (bucket.empty())
        PlanReader::throw_damaged();
    return bucket;
}

}  // namespace

std::string encode_plan(const BucketPlan& plan) {
    std::ostringstream text;
    text << "bucket_plan " << plan.buckets.size() << "\n";
    for (const BucketPlan::Bucket& bucket : plan.buckets) {
        text << name_of(bucket.type) << " " << bucket.gradients.size();
        for (const std::size_t i : bucket.gradients)
            text << "  " << i << " " << plan.gradients[i].elements;
        text << "\n";
    }
    return text.str();
}

BucketPlan decode_plan(const std::string& text, const GradientSizes& gradients) {
    PlanReader reader(text);
    if (reader.word() != "bucket_plan")
        PlanReader::throw_damaged();
    std::vector<bool> seen(gradients.size(), false);
    // Only the assignment travels: the layout follows from it, and is the same on every rank.
    BucketAssignment buckets;
    for (std::size_t left = reader.number(); left > 0; left--)
        buckets.push_back(read_bucket(reader, gradients, seen));
    reader.expect_end();
    // Every gradient of this rank must have got a place.
    const auto missing = std::ranges::find(seen, false);
    if (missing != seen.end())
        throw_other_network("lacks '" + gradients[missing - seen.begin()].name + "'");
    return lay_out(gradients, std::move(buckets));
}

void require_sound(const GradientSizes& gradients, const std::vector<std::size_t>& limits,
                   const std::vector<std::size_t>& order) {
    if (gradients.empty())
        throw std::invalid_argument(
            "there are no gradients to put into buckets: the model needs a parameter that is not "
            "frozen");
    if (limits.empty())
        throw std::invalid_argument("buckets need at least one limit of their size");
    std::vector<bool> seen(gradients.size(), false);
    // No index that does not exist, none twice ...
    for (const std::size_t i : order) {
        if (i >= gradients.size())
            throw std::invalid_argument("the ready order names gradient " + std::to_string(i) +
                                        ", but there are only " + std::to_string(gradients.size()));
        if (seen[i])
            throw std::invalid_argument("the ready order names the gradient of '" +
                                        gradients[i].name + "' twice");
        seen[i] = true;
    }
    // ... and none missing: a gradient without a bucket would never be reduced.
    const auto missing = std::ranges::find(seen, false);
    if (missing != seen.end())
        throw std::invalid_argument("the ready order lacks the gradient of '" +
                                    gradients[missing - seen.begin()].name +
                                    "': buckets can be rebuilt only when all gradients were ready");
}

}  // namespace ddp
