#pragma once
// Batches that other threads prepare ahead, as the workers of PyTorch's DataLoader do, which are
// processes. For two workers:
//
//     time ──►
//     a worker    prepare 0 ────  prepare 2 ────  prepare 4 ────
//     a worker    prepare 1 ────  prepare 3 ────
//     next()      waits ........  0  1 .........  2  3 .........  4
//
// This is DataLoader(num_workers=workers, prefetch_factor=1): each worker is one batch ahead.
#include <algorithm>
#include <deque>
#include <functional>
#include <future>
#include <optional>

namespace ddp {

template <class Batch>
class WorkerLoader {
  public:
    // `prepare` makes batch 0, 1, ... `batches` - 1, on up to `workers` threads at the same time.
    // Without workers next() calls it itself. Begins with the first batches at once.
    WorkerLoader(int batches, int workers, std::function<Batch(int)> prepare)
        : batches_(batches), workers_(workers), prepare_(std::move(prepare)) {
        begin_more();
    }

    // Returns the next batch, in their order, or nothing after the last. Throws what `prepare` has
    // thrown for it.
    std::optional<Batch> next() {
        if (under_way_.empty())
            return std::nullopt;
        std::future<Batch> first = std::move(under_way_.front());
        under_way_.pop_front();
        first.wait();  // a worker is free: let it begin before the caller computes
        begin_more();
        return first.get();
    }

  private:
    void begin_more() {
        const auto how = workers_ == 0 ? std::launch::deferred : std::launch::async;
        while (begun_ < batches_ && static_cast<int>(under_way_.size()) < std::max(1, workers_))
            under_way_.push_back(std::async(how, prepare_, begun_++));
    }

    const int batches_, workers_;
    const std::function<Batch(int)> prepare_;
    int begun_ = 0;
    std::deque<std::future<Batch>> under_way_;  // their destructors wait for the threads
};

}  // namespace ddp
