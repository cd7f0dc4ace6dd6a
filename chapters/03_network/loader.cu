#include "03_network/loader.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "common/data/random.hpp"

namespace ddp {
namespace {

// The operations of common/data's normalise(), in their order, and so their bits.
__global__ void bytes_to_floats(std::size_t n, float mean, float std, const std::uint8_t* bytes,
                                float* floats) {
    for (std::size_t i : grid_range(n))
        floats[i] = (bytes[i] / 255.0f - mean) / std;
}

__global__ void bytes_to_labels(std::size_t n, const std::uint8_t* bytes, int* labels) {
    for (std::size_t i : grid_range(n))
        labels[i] = bytes[i];
}

int checked_batch(int batch, const LabelledImages& images) {
    if (batch < 1 || static_cast<std::size_t>(batch) > images.count())
        throw std::invalid_argument("the batch is " + std::to_string(batch) +
                                    " samples; it must be between 1 and the " +
                                    std::to_string(images.count()) + " that the data set has");
    return batch;
}

}  // namespace

std::vector<int> in_order(int count) {
    std::vector<int> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    return order;
}

// Fisher and Yates: each place takes one of those that are left.
std::vector<int> shuffled(int count, std::uint64_t seed, int epoch) {
    std::vector<int> order = in_order(count);
    Random random(seed + (static_cast<std::uint64_t>(epoch) << 32));
    for (std::size_t i = 0; i < order.size(); i++)
        std::swap(order[i], order[i + random.below(order.size() - i)]);
    return order;
}

Loader::Loader(Device& device, const LabelledImages& images, Normalisation normalisation, int batch,
               LastBatch last_batch, Prefetch prefetch)
    : device_(device),
      images_(images),
      normalisation_(normalisation),
      batch_(checked_batch(batch, images)),
      last_batch_(last_batch),
      prefetch_(prefetch) {
    const std::size_t bytes = static_cast<std::size_t>(batch) * (images.image_size() + 1);
    for (Slot& slot : slots_) {
        slot.host = PinnedBuffer<std::uint8_t>(bytes);
        slot.device = Buffer<std::uint8_t>(bytes);
    }
}

int Loader::batches() const {
    const int samples = static_cast<int>(order_.size());
    return last_batch_ == LastBatch::keep ? (samples + batch_ - 1) / batch_ : samples / batch_;
}

int Loader::samples_in(int batch) const {
    return std::min(batch_, static_cast<int>(order_.size()) - batch * batch_);
}

void Loader::start_epoch(std::vector<int> order) {
    for (int sample : order)
        if (sample < 0 || sample >= samples())
            throw std::out_of_range("there is no sample " + std::to_string(sample) +
                                    " in a data set of " + std::to_string(samples()));
    order_ = std::move(order);
    next_ = 0;
    if (batches() > 0 && prefetch_ == Prefetch::on)
        fetch(0);
}

void Loader::fetch(int batch) {
    Slot& slot = slot_of(batch);
    slot.copied.synchronize();  // the host may write over what was copied, two batches ago
    const auto samples = static_cast<std::size_t>(samples_in(batch));
    const std::size_t pixels = images_.image_size();
    for (std::size_t i = 0; i < samples; i++) {
        const auto sample = static_cast<std::size_t>(order_[batch * batch_ + i]);
        const auto image = images_.image(sample);
        std::copy(image.begin(), image.end(), slot.host.data() + i * pixels);
        slot.host[samples * pixels + i] = images_.labels[sample];
    }
    copies_.wait(slot.consumed);
    DDP_CHECK(cudaMemcpyAsync(slot.device.data(), slot.host.data(), samples * (pixels + 1),
                              cudaMemcpyHostToDevice, copies_));
    slot.copied.record(copies_);
}

std::optional<Batch> Loader::next() {
    if (next_ == batches())
        return std::nullopt;
    if (prefetch_ == Prefetch::off) {
        device_.stream().synchronize();
        fetch(next_);
    }
    Slot& slot = slot_of(next_);
    const int samples = samples_in(next_);
    Batch batch{
        Tensor(device_, {samples, static_cast<int>(images_.channels),
                         static_cast<int>(images_.height), static_cast<int>(images_.width)}),
        Labels(device_, {samples})};
    device_.stream().wait(slot.copied);
    launch(device_.stream(), grid_for(batch.images.size()), bytes_to_floats, batch.images.size(),
           normalisation_.mean, normalisation_.std, slot.device.data(), batch.images.data());
    launch(device_.stream(), grid_for(batch.labels.size()), bytes_to_labels, batch.labels.size(),
           slot.device.data() + batch.images.size(), batch.labels.data());
    slot.consumed.record(device_.stream());
    next_++;
    if (next_ < batches() && prefetch_ == Prefetch::on)
        fetch(next_);
    return batch;
}

}  // namespace ddp
