// The exercise barrier: no rank goes on before every rank has come. Read
// exercises/05_ranks/README.md first.
#include "exercises/05_ranks/barrier.hpp"

namespace ddp {
namespace {

class StoreBarrier : public Barrier {
  public:
    StoreBarrier(const Store& store, int rank, int world_size)
        : store_(store), rank_(rank), world_size_(world_size) {}

    void wait() override {
        // Keys are texts, and std::to_string(rank_) is one.
        throw NotImplemented("one_call");
    }

  private:
    const Store store_;
    const int rank_, world_size_;
};

}  // namespace

std::unique_ptr<Barrier> make_barrier(const Store& store, int rank, int world_size) {
    return std::make_unique<StoreBarrier>(store, rank, world_size);
}

}  // namespace ddp
