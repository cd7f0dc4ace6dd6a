#include "24_mesh/support/mesh_training.hpp"

#include <cmath>
#include <map>
#include <sstream>
#include <stdexcept>

#include "03_network/layers/initialisers.hpp"
#include "03_network/optimizers.hpp"
#include "05_ranks/support/interfaces.hpp"
#include "11_data_parallel/replica.hpp"
#include "15_overlap/ddp.hpp"
#include "common/report/bench.hpp"
#include "common/report/options.hpp"

namespace ddp {
namespace {

void require_divisible(const MeshPlan& plan) {
    const auto require = [&](int size, int by, const std::string& what, const std::string& into) {
        if (size % by != 0)
            throw OptionError(std::to_string(size) + " " + what + " cannot be dealt out to " +
                              std::to_string(by) + " " + into + ": choose a number that divides.");
    };
    require(plan.sentences, plan.shape.dp * plan.micro_batches, "sentences", "micro-batches");
    require(plan.model.blocks, plan.shape.pp, "blocks", "stages");
    for (const auto& [size, what] : std::initializer_list<std::pair<int, const char*>>{
             {plan.model.heads, "heads"},
             {plan.model.feed_forward, "hidden columns"},
             {plan.model.vocabulary, "tokens of the vocabulary"}})
        require(size, plan.shape.tp, what, "parts");
}

constexpr double learning_rate = 0.003;

Shape between_stages(const MeshPlan& plan) {
    return {plan.micro_sentences() * plan.model.length, plan.model.width};
}

std::size_t most_elements(const MeshPlan& plan) {
    return element_count(between_stages(plan));
}

// A hash, or a sum of squares, of each parameter by its name.
using ByName = std::map<std::string, std::string>;

// Joins what all ranks hold. A name that several ranks have must be the same on all of them.
ByName join(Rank& rank, const ByName& mine) {
    std::string text;
    for (const auto& [name, value] : mine)
        text += name + " " + value + "\n";
    ByName all;
    for (const std::string& each : rank.all_gather(text)) {
        std::istringstream lines(each);
        for (std::string name, value; lines >> name >> value;)
            if (!all.emplace(name, value).second && all[name] != value)
                throw std::runtime_error("ranks that share '" + name + "' have different bits");
    }
    return all;
}

ByName hashes_of(const Parameters& parameters) {
    ByName hashes;
    for (const auto& parameter : parameters)
        hashes[parameter->name] = text_of_hash(hash_of({parameter}));
    return hashes;
}

// The squares of each gradient, as hexadecimal numbers: text keeps every bit.
ByName squares_of(const Parameters& parameters) {
    ByName squares;
    for (const auto& parameter : parameters) {
        double sum = 0;
        for (const float g : parameter->gradient().to_host())
            sum += static_cast<double>(g) * g;
        std::ostringstream text;
        text << std::hexfloat << sum;
        squares[parameter->name] = text.str();
    }
    return squares;
}

std::string hash_of_all(const ByName& hashes) {
    std::uint64_t hash = 0;
    for (const auto& [name, text] : hashes)
        hash = (hash ^ std::stoull(text, nullptr, 16)) * 1099511628211u;
    return text_of_hash(hash);
}

double norm_of_all(const ByName& squares) {
    double sum = 0;
    for (const auto& [name, text] : squares)
        sum += std::strtod(text.c_str(), nullptr);
    return std::sqrt(sum);
}

std::size_t bytes_of(const Parameters& parameters) {
    std::size_t bytes = 0;
    for (const auto& parameter : parameters)
        bytes += parameter->value.bytes();
    return bytes;
}

}  // namespace

CountingBatch counting_batch(Device& device, const MeshPlan& plan, int step, int replica,
                             int micro_batch) {
    const int count = plan.micro_sentences(), length = plan.model.length;
    // Token 0 is padding.
    const int words = plan.model.vocabulary - 1;
    std::vector<int> tokens, target;
    for (int i = 0; i < count; i++) {
        const int sentence =
            step * plan.sentences + (replica * plan.micro_batches + micro_batch) * count + i;
        const int first = sentence * 7 % words, stride = 1 + sentence % 5;
        for (int t = 0; t < length; t++) {
            tokens.push_back(1 + (first + t * stride) % words);
            target.push_back(1 + (first + (t + 1) * stride) % words);
        }
    }
    return {Tokens(device, {count, length}, tokens), Labels(device, {count * length}, target)};
}

namespace {

// Computes a micro-batch of this stage with all parts on this rank: all that a GPU has yet to load,
// and no rank waits for another one meanwhile (06_messages/support/kernel_loading.hpp).
void rehearse(Device& device, const MeshPlan& plan, int stage) {
    TensorParallel parts(plan.shape.tp);
    ParallelModel model(parts, device, plan.model, stage, plan.shape.pp, plan.seed);
    const CountingBatch batch = counting_batch(device, plan, 0, 0, 0);
    const Tensor zeros = constant(device, {batch.target.dim(0), plan.model.width}, 0.0f);
    Tape tape(device);
    const Variable input = tape.parameter(std::make_shared<Parameter>("input", zeros));
    Variable end = model.forward(tape, stage == 0 ? std::nullopt : std::optional(input),
                                 batch.tokens, batch.target);
    if (stage < plan.shape.pp - 1)
        end = tape.record("end", Tensor(device, {1}), {end},
                          [](const Tensor&, Tape::InputGradients& inputs) {
                              Tensor gradient = inputs.target(0).tensor;
                              fill(gradient, 0.0f);
                          });
    tape.backward(end);
    device.stream().synchronize();
}

// One rank of a mesh: three communicators, and what runs over each.
class MeshTraining {
  public:
    MeshTraining(const DeviceMesh& mesh, Device& device, const MeshPlan& plan)
        : plan_(plan),
          mesh_(mesh),
          device_(device),
          tp_(mesh.make_communicator(Axis::tp, TensorParallel::arena_bytes(most_elements(plan)))),
          parallel_(mesh.size(Axis::tp) == 1 ? TensorParallel(1)
                                             : TensorParallel(*tp_, most_elements(plan))),
          model_(parallel_, device, plan.model, mesh.index(Axis::pp), mesh.size(Axis::pp),
                 plan.seed),
          dp_(mesh.make_communicator(Axis::dp, ddp_arena_bytes(model_))),
          replica_(*dp_, device, model_),
          pp_(mesh.make_communicator(
              Axis::pp, Pipeline::arena_bytes(between_stages(plan), plan.micro_batches))),
          pipeline_(*pp_, device, between_stages(plan), model_.parameters().front(),
                    [this](Tape& tape, std::optional<Variable> input, int micro_batch) {
                        return forward(tape, input, micro_batch);
                    }) {
        replica_.set_bucket_hook(
            [](Communicator& ranks, Tensor bucket, Stream& stream, const std::string& name) {
                average_bucket(ranks, bucket, stream, "dp: " + name);
            });
    }

    // Adds up the gradients of a step's micro-batches, and averages them over the replicas. The
    // last stage returns the loss.
    double step(int number) {
        batches_.clear();
        for (int m = 0; m < plan_.micro_batches; m++)
            batches_.push_back(counting_batch(device_, plan_, number, mesh_.index(Axis::dp), m));
        bytes_before_ = device_.memory().live_bytes;
        // All backwards but the last only add up. The last one is DDP's.
        const double loss =
            pipeline_.step(plan_.schedule, plan_.micro_batches, [&](Variable end, float scale) {
                replica_.forward([&] { return end; });
                replica_.backward(end, {}, scale);
            });
        dp_->synchronize(device_.stream());
        return loss;
    }

    Parameters parameters() const { return model_.parameters(); }
    std::size_t activations() const { return activations_; }  // bytes, at most
    int max_in_flight() const { return pipeline_.max_in_flight(); }

  private:
    Variable forward(Tape& tape, std::optional<Variable> input, int micro_batch) {
        const CountingBatch& batch = batches_[static_cast<std::size_t>(micro_batch)];
        const Variable end = model_.forward(tape, input, batch.tokens, batch.target);
        activations_ = std::max(activations_, device_.memory().live_bytes - bytes_before_);
        return end;
    }

    const MeshPlan& plan_;
    const DeviceMesh& mesh_;
    Device& device_;
    const std::unique_ptr<Communicator> tp_;
    TensorParallel parallel_;
    ParallelModel model_;
    const std::unique_ptr<Communicator> dp_;
    DistributedDataParallel replica_;
    const std::unique_ptr<Communicator> pp_;
    Pipeline pipeline_;
    std::vector<CountingBatch> batches_;  // of this step
    std::size_t bytes_before_ = 0, activations_ = 0;
};

}  // namespace

MeshResult train_on_mesh(Rank& rank, const MeshPlan& plan) {
    MeshResult result;
    rank.run_part([&] {
        const DeviceMesh mesh(rank, plan.shape);
        require_divisible(plan);
        auto& device = make_run_scoped<Device>(rank, std::size_t{64} << 20);
        if (loads_kernels())
            rehearse(device, plan, mesh.index(Axis::pp));
        MeshTraining training(mesh, device, plan);
        Adam optimizer(training.parameters(), learning_rate);
        const bool has_network = rank.local_world_size() < rank.world_size();
        rank.barrier();
        const SentBytes before = has_network ? sent_bytes() : SentBytes();
        const Stopwatch clock;
        for (int step = 0; step < plan.steps; step++) {
            const double loss = training.step(step);
            // Between the first step and the last one, ranks meet in the axes only: a wait for a
            // rank that has stopped can say in which.
            if (step == 0 || step == plan.steps - 1)
                (step == 0 ? result.first_loss : result.last_loss) =
                    rank.mean_over_ranks(loss) * plan.shape.pp;
            if (step == plan.steps - 1)
                result.norm = norm_of_all(join(rank, squares_of(training.parameters())));
            optimizer.step();
            optimizer.zero_gradients();
        }
        result.seconds_per_step = clock.seconds() / plan.steps;
        if (has_network)  // all ranks have met at the end of the last step
            result.bytes_leaving_node =
                static_cast<double>(max_between(before, sent_bytes()).bytes) / plan.steps;
        result.hash = hash_of_all(join(rank, hashes_of(training.parameters())));
        result.parameters = bytes_of(training.parameters());
        result.activations = training.activations();
        result.max_in_flight = training.max_in_flight();
        rank.barrier();  // no rank leaves while another one may still read its memory
    });
    return result;
}

MeshResult train_on_one_rank(Device& device, const MeshPlan& plan,
                             const std::function<void()>& after_step) {
    require_divisible(plan);
    TensorParallel parallel(plan.shape.tp);
    ParallelModel model(parallel, device, plan.model, 0, 1, plan.seed);
    const Parameters parameters = model.parameters();
    Adam optimizer(parameters, learning_rate);
    MeshResult result;
    const Stopwatch clock;
    for (int step = 0; step < plan.steps; step++) {
        // Each replica's gradient by itself; then their mean.
        std::vector<std::vector<std::vector<float>>> replicas;
        double loss = 0;
        for (int replica = 0; replica < plan.shape.dp; replica++) {
            for (int m = 0; m < plan.micro_batches; m++) {
                const CountingBatch batch = counting_batch(device, plan, step, replica, m);
                Tape tape(device);
                const Variable end = model.forward(tape, std::nullopt, batch.tokens, batch.target);
                const float scale = 1.0f / static_cast<float>(plan.micro_batches);
                tape.backward(end, {}, scale);
                loss += scale * end.value().to_host()[0] / plan.shape.dp;
            }
            replicas.emplace_back();
            for (const auto& parameter : parameters)
                replicas.back().push_back(parameter->gradient().to_host());
            optimizer.zero_gradients();
        }
        for (std::size_t p = 0; p < parameters.size(); p++) {
            std::vector<float> mean = replicas[0][p];
            for (std::size_t i = 0; i < mean.size(); i++) {
                for (std::size_t r = 1; r < replicas.size(); r++)
                    mean[i] += replicas[r][p][i];
                mean[i] /= static_cast<float>(replicas.size());
            }
            parameters[p]->gradient_for_writing().copy_from(mean);
        }
        if (step == plan.steps - 1)
            result.norm = norm_of_all(squares_of(parameters));
        optimizer.step();
        optimizer.zero_gradients();
        (step == 0 ? result.first_loss : result.last_loss) = loss;
        after_step();
    }
    result.seconds_per_step = clock.seconds() / plan.steps;
    result.hash = hash_of_all(hashes_of(parameters));
    result.parameters = bytes_of(parameters);
    return result;
}

// ---- Memory

// A block of width h on t parts, for T tokens, in numbers:
//
//     whole on every part   10 T h      two norms with what they keep, two summands, two sums, two
//                                       residual sums
//     cut into parts        4 T h / t   queries, keys, values, what the heads take
//                           2 T f / t   the hidden columns, before and after ReLU
//                           a T s / t   the weights of a heads over s tokens
std::size_t predicted_activations(const MeshPlan& plan, int stage) {
    const LanguageModelOptions& o = plan.model;
    const int t = plan.shape.tp, stages = plan.shape.pp;
    const std::size_t tokens = static_cast<std::size_t>(plan.micro_sentences()) * o.length;
    const std::size_t whole = 10 * o.width + 2;  // and a statistic for each norm
    const std::size_t cut = (4 * o.width + 2 * o.feed_forward + o.heads * o.length) / t;
    std::size_t numbers = o.blocks / stages * (whole + cut);
    // The first stage has the embedding, its sum, the places and their sum; the others receive.
    numbers += stage == 0 ? 4 * o.width : o.width;
    if (stage == stages - 1)  // the norm, the scores, and three numbers for the loss
        numbers += 2 * o.width + 1 + o.vocabulary / t + 3;
    const int in_flight = plan.schedule == Schedule::gpipe
                              ? plan.micro_batches
                              : std::min(plan.micro_batches, stages - stage);
    return numbers * tokens * in_flight * sizeof(float);
}

}  // namespace ddp
