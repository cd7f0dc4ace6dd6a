#include "tools/cluster/prediction.hpp"

#include <charconv>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include "common/report/options.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

using simulator::Algorithm;

constexpr double mib_of_cap = 1 << 20;

// ---- The list of parameters

void read_parameter(const std::string& line, const std::string& place, ForeignTraining& training) {
    static const std::map<std::string, ElementType> types = {{"float32", ElementType::float32},
                                                             {"float64", ElementType::float64},
                                                             {"float16", ElementType::float16},
                                                             {"bfloat16", ElementType::bfloat16}};
    std::istringstream words(line);
    std::string name, count, type, time, more;
    words >> name >> count >> type >> time;
    const std::optional<double> time_s = parse_seconds(time);
    std::size_t elements = 0;
    const char* end = count.data() + count.size();
    const bool is_number = std::from_chars(count.data(), end, elements).ptr == end;
    if (count.empty() || !is_number || elements == 0 || elements > (std::size_t{1} << 40) ||
        !types.contains(type) || (!time.empty() && !time_s) || words >> more)
        throw OptionError(place +
                          " must be a name, a number of elements and a type, such as "
                          "'fc1.weight 200704 float32', but is '" +
                          line.substr(0, 100) + "'.");
    training.parameters.push_back({name, elements, types.at(type)});
    if (time_s)
        training.times_s.push_back(*time_s);
}

// ---- The simulator's cluster and step

simulator::Cluster cluster_of(const ForeignTraining& training, int ranks) {
    return {.nodes = ranks, .inside = training.link, .between = training.link};
}

// Returns the time of an all-reduce by its bytes; each size is simulated once.
simulator::Seconds all_reduces_of(const ForeignTraining& training, int ranks) {
    const simulator::Cluster cluster = cluster_of(training, ranks);
    return [cluster, known = std::map<double, double>()](double bytes) mutable {
        if (cluster.nodes == 1)
            return 0.0;
        const auto [entry, is_new] = known.try_emplace(bytes);
        if (is_new)
            entry->second = std::min(simulator::all_reduce_s(Algorithm::flat, cluster, bytes),
                                     simulator::all_reduce_s(Algorithm::tree, cluster, bytes));
        return entry->second;
    };
}

// Returns the plan of PyTorch's second step, for a backward from the last parameter to the first.
BucketPlan plan_of(const GradientSizes& parameters, BucketCap cap) {
    std::vector<std::size_t> order(parameters.size());
    std::iota(order.rbegin(), order.rend(), std::size_t{0});
    return rebuilt_plan(parameters, bucket_limits(cap), order);
}

simulator::Step step_of(const ForeignTraining& training, const BucketPlan& plan, double share) {
    double all = 0;
    for (const GradientSize& parameter : training.parameters)
        all += static_cast<double>(parameter.elements);
    const auto time_s = [&](std::size_t i) {
        return training.times_s.empty()
                   ? training.backward_s * static_cast<double>(training.parameters[i].elements) /
                         all
                   : training.times_s[i];
    };
    simulator::Step step{.forward_s = share * training.forward_s, .buckets = {}};
    for (const BucketPlan::Bucket& bucket : plan.buckets) {
        double backward_s = 0;
        for (const std::size_t i : bucket.gradients)
            backward_s += time_s(i);
        step.buckets.push_back({share * backward_s, static_cast<double>(bucket.bytes)});
    }
    return step;
}

PredictedStep predict(const ForeignTraining& training, const simulator::Seconds& all_reduce_s,
                      BucketCap cap, double share) {
    const BucketPlan plan = plan_of(training.parameters, cap);
    const simulator::Step step = step_of(training, plan, share);
    PredictedStep predicted{.cap = cap, .buckets = plan.buckets.size()};
    predicted.step_s = simulator::step_s(step, all_reduce_s, true);
    predicted.compute_s = step.compute_s();
    for (const simulator::Bucket& bucket : step.buckets)
        predicted.communication_s += all_reduce_s(bucket.bytes);
    return predicted;
}

std::vector<PredictedStep> predict_caps(const ForeignTraining& training, int ranks, double share) {
    // One function for all caps: their buckets often have the same size.
    const simulator::Seconds all_reduce_s = all_reduces_of(training, ranks);
    std::vector<PredictedStep> steps{predict(training, all_reduce_s, std::nullopt, share)};
    for (const double cap : {1., 2., 5., 10., 25., 50., 100., 200., 1000.}) {
        steps.push_back(
            predict(training, all_reduce_s, static_cast<std::size_t>(cap * mib_of_cap), share));
        if (steps.back().buckets == 1)
            break;  // a larger cap changes nothing
    }
    return steps;
}

}  // namespace

ForeignTraining read_training(const std::filesystem::path& path) {
    const auto refuse = [&](const std::string& words) {
        throw OptionError("The list of parameters '" + path.string() + "' " + words);
    };
    std::ifstream file(path);
    if (!file)
        refuse("cannot be read: --parameters takes a file.");
    std::string list((1 << 20) + 1, ' ');
    file.read(list.data(), static_cast<std::streamsize>(list.size()));
    if (file)
        refuse("is longer than 1 MiB: is it another file?");
    list.resize(static_cast<std::size_t>(file.gcount()));
    ForeignTraining training;
    std::istringstream lines(list);
    std::string line;
    for (int number = 1; std::getline(lines, line); number++)
        if (line.find_first_not_of(" \t\r") != line.npos)
            read_parameter(line, "Line " + std::to_string(number) + " of " + path.string(),
                           training);
    if (training.parameters.empty())
        refuse("has none: it needs a line for each.");
    if (!training.times_s.empty() && training.times_s.size() != training.parameters.size())
        refuse("has times for some of them: it needs them for all, or for none.");
    training.backward_s = std::accumulate(training.times_s.begin(), training.times_s.end(), 0.0);
    return training;
}

PredictedStep predict_step(const ForeignTraining& training, int ranks, BucketCap cap,
                           double share) {
    return predict(training, all_reduces_of(training, ranks), cap, share);
}

std::vector<PredictedStep> predict_caps(const ForeignTraining& training, int ranks) {
    return predict_caps(training, ranks, 1);
}

const PredictedStep& best_of(const std::vector<PredictedStep>& steps) {
    const double least_s = std::ranges::min_element(steps, {}, &PredictedStep::step_s)->step_s;
    return *std::ranges::find_if(
        steps, [=](const PredictedStep& step) { return step.step_s < 1.01 * least_s; });
}

int ranks_that_pay(const ForeignTraining& training, int most, bool share_one_batch) {
    // Batches per second, of the size that one rank has measured.
    const auto speed = [&](int ranks) {
        const double share = share_one_batch ? 1.0 / ranks : 1;
        return ranks * share / best_of(predict_caps(training, ranks, share)).step_s;
    };
    int ranks = 1;
    for (double known = speed(1); 2 * ranks <= most; ranks *= 2) {
        const double next = speed(2 * ranks);
        if (next < least_gain * known)
            break;
        known = next;
    }
    return ranks;
}

}  // namespace ddp
