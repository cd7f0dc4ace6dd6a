#pragma once
// Memory against time in one step: measured, and drawn as a line of blocks.
#include <cstdint>
#include <filesystem>

#include "04_gradient_accumulation/show/picture_report.hpp"

namespace ddp {

// Takes a step with each size that divides the batch into at most eight micro-batches, and prints
// how much memory tensors hold from the step's beginning to its end. Writes every change to the
// file `csv`, unless that is empty: pictures at a time, phase, seconds since the step's beginning,
// bytes.
void show_memory_over_time(const LabelledImages& images, const PictureOptions& options,
                           std::uint64_t seed, const std::filesystem::path& csv);

}  // namespace ddp
