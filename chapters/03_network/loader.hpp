#pragma once
// Brings a data set to the device, batch by batch, while the device computes with the batch before.
//
//     loader.start_epoch(shuffled(loader.samples(), seed, epoch));
//     while (const std::optional<Batch> batch = loader.next()) ...
//
// The host gathers the pictures of batch k + 1 in pinned memory and starts their copy on a stream
// of its own; events, not the host, keep the two streams in order. Pixels travel as bytes, a
// quarter of what floats would be, and become floats on the device.
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "01_sgd/tensor.hpp"
#include "common/data/images.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {

struct Batch {
    Tensor images;  // [batch, channels, height, width], normalised
    Labels labels;  // [batch]
};

// What to do with the samples at the end that do not fill a batch.
enum class LastBatch { keep, drop };

// When the host gathers a batch: while the device computes with the one before, or, to see what
// that is worth, when the device has done all work.
enum class Prefetch { on, off };

// 0 .. count-1, in an order that depends on seed and epoch only, or as they are.
std::vector<int> shuffled(int count, std::uint64_t seed, int epoch);
std::vector<int> in_order(int count);

class Loader {
  public:
    // `images` must live longer. Throws std::invalid_argument if the batch is not between 1 and the
    // number of samples.
    Loader(Device& device, const LabelledImages& images, Normalisation normalisation, int batch,
           LastBatch last_batch = LastBatch::keep, Prefetch prefetch = Prefetch::on);

    int samples() const { return static_cast<int>(images_.count()); }
    int batch_size() const { return batch_; }
    // Of the running epoch.
    int batches() const;

    // `order` says which samples, and in which order. Throws std::out_of_range for one that does
    // not exist.
    void start_epoch(std::vector<int> order);

    // The next batch, ready for work on the device's stream; nothing at the end of the epoch.
    std::optional<Batch> next();

  private:
    // Two of these take turns: one is computed with while the other is filled.
    struct Slot {
        PinnedBuffer<std::uint8_t> host;  // pixels of all samples, then their labels
        Buffer<std::uint8_t> device;
        Event copied;    // host -> device is done
        Event consumed;  // the device's stream has read it
    };

    Slot& slot_of(int batch) { return slots_[static_cast<std::size_t>(batch) % slots_.size()]; }
    int samples_in(int batch) const;
    void fetch(int batch);

    Device& device_;
    const LabelledImages& images_;
    const Normalisation normalisation_;
    const int batch_;
    const LastBatch last_batch_;
    const Prefetch prefetch_;
    std::vector<int> order_;
    int next_ = 0;  // batch of the epoch
    Stream copies_;
    std::array<Slot, 2> slots_;
};

}  // namespace ddp
