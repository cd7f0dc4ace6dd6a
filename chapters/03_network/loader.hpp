#pragma once
// Brings a data set to the device, batch by batch, while the device computes with the batch before.
//
//     loader.start_epoch(shuffled(loader.samples(), seed, epoch));
//     while (const std::optional<Batch> batch = loader.next()) ...
//
// Pixels travel as bytes, a quarter of the size of floats, and become floats on the device.
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

// The use of the last samples of an epoch if they do not fill a batch.
enum class LastBatch { keep, drop };

// When the host gathers a batch: while the device computes with the one before (on), or after the
// device has done all its work (off), to measure what prefetching gains.
enum class Prefetch { on, off };

// Returns 0 .. count-1 in a random order that depends only on the seed and the epoch.
std::vector<int> shuffled(int count, std::uint64_t seed, int epoch);
// Returns 0 .. count-1 in this order.
std::vector<int> in_order(int count);

class Loader {
  public:
    // `device` and `images` must outlive the loader. `batch` is in samples. Throws
    // std::invalid_argument if it is not between 1 and the number of samples.
    Loader(Device& device, const LabelledImages& images, Normalisation normalisation, int batch,
           LastBatch last_batch = LastBatch::keep, Prefetch prefetch = Prefetch::on);

    int samples() const { return static_cast<int>(images_.count()); }
    int batch_size() const { return batch_; }
    // Returns the number of batches in the current epoch.
    int batches() const;

    // Begins an epoch with the samples in `order`, and starts to fetch its first batch. Throws
    // std::out_of_range for a sample that does not exist.
    void start_epoch(std::vector<int> order);

    // Returns the next batch, ready for work on the device's stream, or nothing at the end of the
    // epoch. Starts to fetch the batch after it.
    std::optional<Batch> next();

  private:
    // The memory of one batch on its way. There are two: the device reads one while the host fills
    // the other.
    struct Slot {
        PinnedBuffer<std::uint8_t> host;  // pixels of all samples, then their labels
        Buffer<std::uint8_t> device;      // the same
        Event copied;    // the copy host -> device is done: `host` may be filled again
        Event consumed;  // the device's stream has read `device`: it may be overwritten
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
    int next_ = 0;  // the batch that next() returns
    Stream copies_;
    std::array<Slot, 2> slots_;
};

}  // namespace ddp
