#include "19_checkpoint_failover/state/mirror.hpp"

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Mirrors the marked pictures, one thread for each row: it swaps pixels from both ends to the
// middle.
__global__ void mirror_rows(std::size_t rows, std::size_t rows_of_picture, int width,
                            const __grid_constant__ Mirrored which, float* images) {
    for (std::size_t row : grid_range(rows)) {
        const std::size_t picture = row / rows_of_picture;
        if ((which.bits[picture / 64] >> (picture % 64) & 1) == 0)
            continue;
        float* pixels = images + row * static_cast<std::size_t>(width);
        for (int left = 0, right = width - 1; left < right; left++, right--) {
            const float pixel = pixels[left];
            pixels[left] = pixels[right];
            pixels[right] = pixel;
        }
    }
}

}  // namespace

Mirrored toss(Random& random, int batch, int rank, int world_size) {
    Mirrored which;
    for (int i = 0; i < batch * world_size; i++)
        if (random.below(2) == 1 && i % world_size == rank)
            which.set(i / world_size);
    return which;
}

void mirror(Tensor images, const Mirrored& which) {
    const auto rows_of_picture = static_cast<std::size_t>(images.dim(1) * images.dim(2));
    const std::size_t rows = static_cast<std::size_t>(images.dim(0)) * rows_of_picture;
    launch(images.device().stream(), grid_for(rows), mirror_rows, rows, rows_of_picture,
           images.dim(3), which, images.data());
}

}  // namespace ddp
