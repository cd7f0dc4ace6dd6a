#pragma once
// The search of --detect-anomaly: which gradient is infinite or no number (NaN)? It looks at
// this rank's own gradients, before an average mixes them with other ranks'; afterwards all ranks
// have the NaN, and its origin is lost.
#include "14_buckets/flat_buffers.hpp"

namespace ddp {

class AnomalySearch {
  public:
    // Both must outlive this object.
    AnomalySearch(Device& device, const FlatBuffers& gradients);

    // Enqueues on `stream` a search in `bucket`, a view returned by gradients.bucket(). It costs
    // one pass over the bucket's memory.
    void search(const Tensor& bucket, Stream& stream);
    // Waits for the device's stream, which must wait for all searches. Throws std::runtime_error
    // naming the parameter if a search since the last call has found NaN or infinity; the first in
    // memory if there are several.
    void require_finite();

  private:
    void forget();

    const FlatBuffers& gradients_;
    BasicTensor<unsigned long long> first_;  // one: a place in the memory of all buckets
};

}  // namespace ddp
