#pragma once
// One launch for many arrays, as if they lay behind one another in one array:
//
//     arrays[0]           arrays[1]   arrays[2]
//     0 1 2 3 4 5 6 7     0 1 2       0 1 2 3 4 5 6 7 8 9
//     └── thread 0 ──────────┘ └── thread 1 ───────────┘     on a CPU; see grid_range
//
// The list itself travels as an argument of the kernel: nothing is copied to the device before.
// (PyTorch's foreach and fused optimizers do the same: multi_tensor_apply.)
#include <cstddef>
#include <utility>
#include <vector>

#include "common/gpu/gpu.hpp"

namespace ddp {

// An Array has a `size`, in elements, and the pointers and factors that the kernel needs for it.
template <class Array>
struct ArrayList {
    // CUDA allows 4 KiB for all arguments of a kernel; the kernel's other ones need some of it.
    static constexpr std::size_t most = (4096 - 256) / sizeof(Array);

    std::size_t count = 0, elements = 0;  // arrays, and their elements together
    Array arrays[most] = {};
};

// Calls visit(array, i) for each element that is the calling thread's: element i of `array`.
template <class Array, class Visit>
__device__ void for_each_element(const ArrayList<Array>& list, Visit visit) {
    const GridRange mine = grid_range(list.elements);
    std::size_t at = mine.first, begin = 0;
    for (std::size_t a = 0; a < list.count && at < mine.last; a++) {
        const Array& array = list.arrays[a];
        const std::size_t end = begin + array.size;
        const std::size_t last = end < mine.last ? end : mine.last;
        for (; at < last; at += mine.step)
            visit(array, at - begin);
        begin = end;
    }
}

// Launches `kernel` over all elements of `arrays`: once, unless there are more than ArrayList::most
// arrays, and not at all if there are none.
template <class Array, class... Parameters>
void launch_over(cudaStream_t stream, const std::vector<Array>& arrays,
                 void (*kernel)(ArrayList<Array>, Parameters...), const Parameters&... arguments) {
    ArrayList<Array> list;
    for (const Array& array : arrays) {
        list.arrays[list.count++] = array;
        list.elements += array.size;
        if (list.count < list.most && &array != &arrays.back())
            continue;
        launch(stream, grid_for(list.elements), kernel, list, arguments...);
        list = {};
    }
}

}  // namespace ddp
