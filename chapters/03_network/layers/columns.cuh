#pragma once
// A row of the matrix of columns (im2col): what one weight of the window sees of one picture.
//
// Example: a 3 x 3 window with padding 1 on a 4 x 4 picture. The weight at the window's top left
// corner (ky = kx = 0) sees, for each output pixel, the input pixel one line up and one to the
// left:
//
//     picture          its row of the matrix, seen as a picture
//     a b c d          0 0 0 0
//     e f g h          0 a b c
//     i j k l          0 e f g
//     m n o p          0 i j k
#include <algorithm>

#include "common/gpu/gpu.hpp"
#include "common/gpu/rows.hpp"

namespace ddp {

// The sizes of one convolution. Lengths are in pixels.
struct ConvSizes {
    int batch, group;  // a group is the samples that are computed together
    int channels, height, width;
    int out_channels, out_height, out_width;
    int kernel, stride, padding;

    __host__ __device__ int window() const { return channels * kernel * kernel; }
    __host__ __device__ int in_plane() const { return height * width; }
    __host__ __device__ int out_plane() const { return out_height * out_width; }
    __host__ __device__ bool keeps_size() const { return stride == 1 && out_width == width; }
};

// The part of a picture that row (c, ky, kx) of the matrix sees: output pixel (oy, ox) sees input
// pixel (oy * stride + top, ox * stride + left), if that lies within the picture.
struct WindowView {
    int top, left;
    int first_x, last_x;  // columns first_x <= ox < last_x see pixels of the picture

    // `k` is the row's number, (c * kernel + ky) * kernel + kx.
    __device__ WindowView(const ConvSizes& s, int k) {
        top = k / s.kernel % s.kernel - s.padding;
        left = k % s.kernel - s.padding;
        first_x = left < 0 ? std::min((-left + s.stride - 1) / s.stride, s.out_width) : 0;
        last_x = std::clamp((s.width - left + s.stride - 1) / s.stride, first_x, s.out_width);
    }
};

// Copies what the view sees of `plane` [height, width] to `row` [out_height, out_width], line by
// line; zeros where it sees beyond the picture. All threads of the block take part.
__device__ inline void copy_by_lines(const ConvSizes& s, const WindowView& view, const float* plane,
                                     float* row) {
    const GridRange mine = column_range(s.out_width);
    for (int oy = 0; oy < s.out_height; oy++) {
        const int y = oy * s.stride + view.top;
        const float* line = plane + y * s.width + view.left;
        for (std::size_t ox : mine) {
            const int x = static_cast<int>(ox);
            const bool exists = y >= 0 && y < s.height && x >= view.first_x && x < view.last_x;
            row[oy * s.out_width + x] = exists ? line[x * s.stride] : 0.0f;
        }
    }
}

// The reverse: adds every element of `row` to the pixel of `plane` that it was copied from. Within
// one view no two outputs see the same pixel, so no two threads add to the same place.
__device__ inline void add_by_lines(const ConvSizes& s, const WindowView& view, const float* row,
                                    float* plane) {
    const GridRange mine = column_range(view.last_x - view.first_x);
    for (int oy = 0; oy < s.out_height; oy++) {
        const int y = oy * s.stride + view.top;
        if (y < 0 || y >= s.height)
            continue;
        float* line = plane + y * s.width + view.left;
        for (std::size_t i : mine) {
            const std::size_t x = view.first_x + i;
            line[x * s.stride] += row[oy * s.out_width + x];
        }
    }
}

// ---- The same, faster, where stride is 1 and the output is as large as the input

// In that case a view is the whole picture moved by `shift` places in memory, as the example above
// shows: one long loop replaces a loop for each line, and the compiler vectorises it. It is right
// but for the sides, where the end of a line sees the beginning of the next: these are set to zero.
struct ShiftedView {
    int shift, first, last;  // output i sees input i + shift, for first <= i < last

    __device__ ShiftedView(const ConvSizes& s, const WindowView& view) {
        shift = view.top * s.width + view.left;
        first = std::clamp(-shift, 0, s.in_plane());
        last = std::clamp(s.in_plane() - shift, first, s.in_plane());
    }
};

// Writes zeros where the view sees beyond the picture at the left or at the right.
__device__ inline void clear_sides(const ConvSizes& s, const WindowView& view, float* row) {
    for (std::size_t oy : column_range(s.out_height)) {
        for (int ox = 0; ox < view.first_x; ox++)
            row[oy * s.out_width + ox] = 0.0f;
        for (int ox = view.last_x; ox < s.out_width; ox++)
            row[oy * s.out_width + ox] = 0.0f;
    }
}

// Does what copy_by_lines does.
__device__ inline void copy_shifted(const ConvSizes& s, const WindowView& view, const float* plane,
                                    float* row) {
    const ShiftedView seen(s, view);
    for (std::size_t i : column_range(seen.first))
        row[i] = 0.0f;
    for (std::size_t i : column_range(seen.last - seen.first))
        row[seen.first + i] = plane[seen.first + seen.shift + i];
    for (std::size_t i : column_range(s.out_plane() - seen.last))
        row[seen.last + i] = 0.0f;
    __syncthreads();
    clear_sides(s, view, row);
}

// Does what add_by_lines does. Overwrites the sides of `row` with zeros.
__device__ inline void add_shifted(const ConvSizes& s, const WindowView& view, float* row,
                                   float* plane) {
    clear_sides(s, view, row);
    __syncthreads();
    const ShiftedView seen(s, view);
    for (std::size_t i : column_range(seen.last - seen.first))
        plane[seen.first + seen.shift + i] += row[seen.first + i];
}

// ---- The faster one where it applies

// Copies what the view sees of `plane` to `row`.
__device__ inline void copy_view(const ConvSizes& s, const WindowView& view, const float* plane,
                                 float* row) {
    if (s.keeps_size())
        copy_shifted(s, view, plane, row);
    else
        copy_by_lines(s, view, plane, row);
}

// Adds a row of the matrix back to the picture. The row is used up: its sides may be overwritten.
__device__ inline void add_view(const ConvSizes& s, const WindowView& view, float* row,
                                float* plane) {
    if (s.keeps_size())
        add_shifted(s, view, row, plane);
    else
        add_by_lines(s, view, row, plane);
}

}  // namespace ddp
