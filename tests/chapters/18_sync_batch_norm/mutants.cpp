#include "tests/chapters/18_sync_batch_norm/mutants.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "18_sync_batch_norm/sync_batch_norm.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<float>;

// The steps of SyncBatchNorm, and between them, on the host, what a mistake would do.
class Mistaken : public Module {
  public:
    Mistaken(Mistake mistake, std::unique_ptr<BatchNorm2d> plain, Communicator& communicator)
        : Module(plain->name()),
          mistake_(mistake),
          plain_(std::move(plain)),
          communicator_(communicator),
          ranks_(static_cast<std::size_t>(communicator.world_size())),
          channels_(plain_->running_mean.dim(0)),
          gathered_(communicator.allocate<float>(numbers() * ranks_)),
          sums_(communicator.allocate<float>(2 * static_cast<std::size_t>(channels_))) {}

    Parameters parameters() const override { return plain_->parameters(); }
    std::vector<NamedTensor> buffers() const override { return plain_->buffers(); }

    Variable forward(Variable input) override {
        const Tensor x = input.value();
        Stream& stream = x.device().stream();
        float* own = gathered_.data() + numbers() * static_cast<std::size_t>(rank());
        write_moments(x, own);
        if (mistake_ == Mistake::empty_is_no_number && x.size() == 0)
            spoil(stream);
        communicator_.all_gather(own, gathered_.data(), numbers(), stream);
        communicator_.synchronize(stream);
        const Values gathered = gathered_.to_host_now();
        if (mistake_ == Mistake::mean_of_means)
            gathered_.copy_from(with_equal_counts(gathered));
        const Values before = plain_->running_var.to_host();
        const CombinedMoments combined =
            combine_moments(gathered_.data(), communicator_.world_size(), plain_->running_mean,
                            plain_->running_var);
        if (mistake_ == Mistake::biased_variance)
            make_biased(before, total(gathered));
        if (mistake_ == Mistake::local_count)
            Tensor(combined.inverse_count)
                .copy_from(Values{x.size() > 0 ? static_cast<float>(channels_) / x.size() : 0.0f});
        const Tensor weight = plain_->weight->value;
        Tape& tape = *input.tape;
        return tape.record("mistaken", normalised(x, combined.moments, weight, plain_->bias->value),
                           {input, tape.parameter(plain_->weight), tape.parameter(plain_->bias)},
                           [=, this](const Tensor& dy, Tape::InputGradients& gradients) {
                               backward(x, weight, combined, dy, gradients);
                           });
    }

  private:
    int rank() const { return communicator_.rank().rank(); }
    std::size_t numbers() const { return moments_size(channels_); }
    float count_of(const Values& gathered, std::size_t r) const {
        return gathered[(r + 1) * numbers() - 1];
    }
    float total(const Values& gathered) const {
        float sum = 0;
        for (std::size_t r = 0; r < ranks_; r++)
            sum += count_of(gathered, r);
        return sum;
    }

    void spoil(Stream& stream) {
        stream.synchronize();
        Values gathered = gathered_.to_host_now();
        for (std::size_t i = 0; i + 1 < numbers(); i++)
            gathered[static_cast<std::size_t>(rank()) * numbers() + i] =
                std::numeric_limits<float>::quiet_NaN();
        gathered_.copy_from(gathered);
    }

    Values with_equal_counts(Values gathered) const {
        const float all = total(gathered);
        float with_pictures = 0;
        for (std::size_t r = 0; r < ranks_; r++)
            with_pictures += count_of(gathered, r) > 0;
        for (std::size_t r = 0; r < ranks_; r++)
            if (count_of(gathered, r) > 0)
                gathered[(r + 1) * numbers() - 1] = all / with_pictures;
        return gathered;
    }

    void make_biased(const Values& before, float count) {
        constexpr float momentum = BatchNorm2d::momentum;
        Values variances = plain_->running_var.to_host();
        for (std::size_t i = 0; i < variances.size(); i++) {
            const float kept = (1 - momentum) * before[i];
            variances[i] = kept + (variances[i] - kept) * (count - 1) / count;
        }
        plain_->running_var.copy_from(variances);
    }

    void backward(const Tensor& x, const Tensor& weight, const CombinedMoments& combined,
                  const Tensor& dy, Tape::InputGradients& gradients) {
        Stream& stream = x.device().stream();
        const GradientSums own = sums_of_gradients(x, combined.moments, dy);
        give_parameter_gradients(own, gradients);
        Values sums = own.dy.to_host();
        for (const float sum : own.product.to_host())
            sums.push_back(sum);
        sums_.copy_from(sums);
        if (mistake_ != Mistake::local_sums)
            communicator_.all_reduce(sums_.data(), sums_.data(), sums_.size(), ReduceOp::sum,
                                     stream);
        give_input_gradient(x, combined.moments, weight,
                            divide_by_count(sums_.data(), combined.inverse_count, channels_), 1.0f,
                            dy, gradients);
    }

    const Mistake mistake_;
    const std::unique_ptr<BatchNorm2d> plain_;
    Communicator& communicator_;
    const std::size_t ranks_;
    const int channels_;
    ArenaBuffer<float> gathered_, sums_;
};

}  // namespace

MakeNorm make_mistaken(Mistake mistake) {
    return [mistake](std::unique_ptr<BatchNorm2d> plain, Communicator& communicator) {
        return std::make_unique<Mistaken>(mistake, std::move(plain), communicator);
    };
}

std::string cause_of(const std::vector<Differences>& found) {
    const auto is_wrong = [](double difference) { return !(difference <= 1e-5); };
    const auto any = [&](double Differences::*member) {
        return std::ranges::any_of(found,
                                   [&](const Differences& d) { return is_wrong(d.*member); });
    };
    const bool output = any(&Differences::output), mean = any(&Differences::running_mean),
               var = any(&Differences::running_var), dx = any(&Differences::input_gradient),
               parameters = any(&Differences::parameter_gradients);
    if (!output && !mean && !var && !dx && !parameters)
        return "";
    const bool only_when_one_is_empty =
        !is_wrong(found[0].largest()) && !is_wrong(found[1].largest());
    if (only_when_one_is_empty && std::isinf(found[2].output))
        return "a rank without a picture spoils the statistics of all";
    if (var && !output && !mean && !dx && !parameters)
        return "the running variance is divided by the count, not by one less";
    // A rank without samples has no input whose gradient could be wrong.
    if (dx && !output && !mean && !var && !parameters)
        return "the gradient of the input is not that of the union";
    if (!is_wrong(found[0].largest()) && output && mean)
        return "the ranks' means do not weigh by their counts";
    return "something else";
}

}  // namespace ddp::test
