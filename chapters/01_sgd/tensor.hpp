#pragma once
// A tensor: an array in device memory with a shape. The last dimension is contiguous (row-major).
//
// A tensor is a handle, as in PyTorch: copies share the memory, and the last copy returns it to its
// Device (or to another owner). All arithmetic is done by kernels, which receive data() and size().
// `where` is the caller's line, for error messages; no caller passes it.
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "01_sgd/device.hpp"

namespace ddp {

using Shape = std::vector<int>;

// Returns the product of all dimensions; 1 for the empty shape.
std::size_t element_count(const Shape& shape);
// Returns the shape as text, such as "[64, 784]".
std::string to_string(const Shape& shape);

template <class T>
class BasicTensor {
  public:
    BasicTensor() = default;  // empty: no memory, no device
    // Allocates device memory, which is not initialised. `device` must outlive the tensor.
    BasicTensor(Device& device, Shape shape, Where where = Where::current())
        : device_(&device),
          shape_(std::move(shape)),
          size_(element_count(shape_)),
          memory_(device.allocate(size_ * sizeof(T), where)),
          data_(reinterpret_cast<T*>(memory_.get())) {}
    // Allocates device memory and copies `values` into it, one per element; waits for the copy.
    BasicTensor(Device& device, Shape shape, std::span<const T> values,
                Where where = Where::current())
        : BasicTensor(device, std::move(shape), where) {
        copy_from(values, where);
    }

    bool is_empty() const { return device_ == nullptr; }
    Device& device() const { return *device_; }
    const Shape& shape() const { return shape_; }
    int dim(std::size_t i) const { return shape_.at(i); }
    std::size_t size() const { return size_; }  // elements
    std::size_t bytes() const { return size_ * sizeof(T); }
    T* data() const { return data_; }  // device memory

    // Copies `values` into this tensor, after all work that is in the stream by now, and waits
    // until the copy is complete. Throws std::invalid_argument unless there is one per element.
    void copy_from(std::span<const T> values, Where where = Where::current()) {
        if (values.size() != size_)
            throw std::invalid_argument("a tensor of " + to_string(shape_) + " cannot take " +
                                        std::to_string(values.size()) + " values");
        copy(data_, values.data(), where);
    }
    // Returns the elements as they are after all work that is in the stream by now, and waits.
    std::vector<T> to_host(Where where = Where::current()) const {
        std::vector<T> values(size_);
        copy(values.data(), data_, where);
        return values;
    }

    // ---- The rest can wait: tensors that share memory

    // Returns the same memory from element `first` on, seen as `shape`. Throws std::out_of_range if
    // that is more than this tensor has.
    BasicTensor view(std::size_t first, Shape shape) const {
        BasicTensor result = *this;
        result.shape_ = std::move(shape);
        result.size_ = element_count(result.shape_);
        result.data_ = data_ + first;
        if (first + result.size_ > size_)
            throw std::out_of_range("a view of " + to_string(result.shape_) + " from element " +
                                    std::to_string(first) + " does not fit into " +
                                    to_string(shape_));
        return result;
    }
    // Returns the same elements, seen as `shape`. Throws std::out_of_range if `shape` has more.
    BasicTensor reshaped(Shape shape) const { return view(0, std::move(shape)); }

    // Makes a tensor of another owner's memory, from its beginning on, and shares the ownership.
    BasicTensor(Device& device, Shape shape, const std::shared_ptr<T>& memory)
        : device_(&device),
          shape_(std::move(shape)),
          size_(element_count(shape_)),
          memory_(memory, reinterpret_cast<std::byte*>(memory.get())),
          data_(memory.get()) {}

  private:
    // Waits for the stream's work, and then for the copy. (A copy to memory that is not pinned
    // would wait for that work inside the driver, and may so keep other threads from launching what
    // it waits for.)
    void copy(void* to, const void* from, Where where) const {
        if (size_ == 0)
            return;
        device_->stream().synchronize(where);
        check(cudaMemcpyAsync(to, from, bytes(), cudaMemcpyDefault,  // in the addresses' direction
                              device_->stream() DDP_CALLED_AT(where)),
              "cudaMemcpyAsync", where);
        device_->stream().synchronize(where);
    }

    Device* device_ = nullptr;
    Shape shape_;
    std::size_t size_ = 0;
    std::shared_ptr<std::byte> memory_;
    T* data_ = nullptr;
};

using Tensor = BasicTensor<float>;
using Labels = BasicTensor<int>;  // class numbers, one per sample

// Enqueues setting every element to `value` on the device's stream.
void fill(Tensor& tensor, float value);

}  // namespace ddp
