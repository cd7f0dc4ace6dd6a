#pragma once
// The multiprocessors of a small GPU (CUDA_ON_CPU=multiprocessors=N), and who holds them.

namespace cuda_on_cpu {

// Some multiprocessors of the played GPU, held until the end of the object. None where none are
// played.
class HeldMultiprocessors {
  public:
    // Waits until there is one for each of `blocks`, which must run at the same time: a kernel that
    // waits for one which finds too few of them waits forever.
    static HeldMultiprocessors for_all(int blocks);
    // Waits until there is one, and takes up to `blocks` if there are more.
    static HeldMultiprocessors for_some(int blocks);

    ~HeldMultiprocessors();
    HeldMultiprocessors(const HeldMultiprocessors&) = delete;
    HeldMultiprocessors& operator=(const HeldMultiprocessors&) = delete;

    int count() const { return count_; }

  private:
    explicit HeldMultiprocessors(int count) : count_(count) {}
    int count_;
};

}  // namespace cuda_on_cpu
