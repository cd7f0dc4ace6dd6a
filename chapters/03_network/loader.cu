// The loader: three queues, two slots. While the device computes with one batch, the next ones are
// copied and gathered.
//
//     time ──►
//     host     gather 0   gather 1   gather 2               gather 3               gather 4
//     copies              copy 0     copy 1     copy 2                 copy 3
//     device                         compute 0 ...........  compute 1 ...........  compute 2 ...
//     slot     0          1          0                      1                      0
//
// Two events per slot keep the queues in order, and none of them stops for longer than it must:
//
//     copied      the copy is done: the device may read the slot's device memory, and the host may
//                 fill its pinned memory again
//     consumed    the device has read the slot: the next copy may overwrite its device memory
#include "03_network/loader.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "common/data/random.hpp"

namespace ddp {
namespace {

// Normalises the pixels. The operations and their order are those of normalise() in common/data, so
// the bits are the same.
__global__ void bytes_to_floats(std::size_t n, float mean, float std, const std::uint8_t* bytes,
                                float* floats) {
    for (std::size_t i : grid_range(n))
        floats[i] = (bytes[i] / 255.0f - mean) / std;
}

// Widens the labels, which are stored as bytes after the pixels.
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

// The shuffle of Fisher and Yates: each place gets one of the samples that are left, all with the
// same probability. Seed and epoch make one 64-bit seed, so every epoch has its own order.
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
    // All memory is allocated here, and none in an epoch. A sample is its pixels and one label.
    const std::size_t bytes = static_cast<std::size_t>(batch) * (images.image_bytes() + 1);
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
    // The first batch has no computation to hide behind.
    if (batches() > 0 && prefetch_ == Prefetch::on)
        fetch(0);
}

void Loader::fetch(int batch) {
    Slot& slot = slot_of(batch);
    // 1. Wait until the slot's pinned memory is free: its last copy, two batches ago, must be done.
    slot.copied.synchronize();
    // 2. Gather the samples, which are scattered over the data set, in one contiguous block.
    const auto samples = static_cast<std::size_t>(samples_in(batch));
    const std::size_t pixels = images_.image_bytes();
    for (std::size_t i = 0; i < samples; i++) {
        const auto sample = static_cast<std::size_t>(order_[batch * batch_ + i]);
        const auto image = images_.image(sample);
        std::copy(image.begin(), image.end(), slot.host.data() + i * pixels);
        slot.host[samples * pixels + i] = images_.labels[sample];
    }
    // 3. Enqueue one copy. It waits, on the device, until the kernels that read the slot are done.
    copies_.wait(slot.consumed);
    DDP_CHECK(cudaMemcpyAsync(slot.device.data(), slot.host.data(), samples * (pixels + 1),
                              cudaMemcpyHostToDevice, copies_));
    // 4. Mark its end.
    slot.copied.record(copies_);
}

std::optional<Batch> Loader::next() {
    if (next_ == batches())
        return std::nullopt;
    // Without prefetch: let the device finish, and only then gather.
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
    // 5. The device's stream waits for the copy; the host does not.
    device_.stream().wait(slot.copied);
    const std::size_t bytes = batch.labels.size() * images_.image_bytes();
    if (images_.are_numbers)  // a table's rows are floats already, and normalised
        DDP_CHECK(cudaMemcpyAsync(batch.images.data(), slot.device.data(), bytes,
                                  cudaMemcpyDeviceToDevice, device_.stream()));
    else
        launch(device_.stream(), grid_for(bytes), bytes_to_floats, bytes, normalisation_.mean,
               normalisation_.std, slot.device.data(), batch.images.data());
    launch(device_.stream(), grid_for(batch.labels.size()), bytes_to_labels, batch.labels.size(),
           slot.device.data() + bytes, batch.labels.data());
    // 6. The batch has tensors of its own now, and the slot is free for the batch after the next.
    slot.consumed.record(device_.stream());
    next_++;
    // 7. Gather the next batch, before the caller has even enqueued the work on this one.
    if (next_ < batches() && prefetch_ == Prefetch::on)
        fetch(next_);
    return batch;
}

}  // namespace ddp
