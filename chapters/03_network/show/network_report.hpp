#pragma once
// What a training run has shown, as tables.
#include <filesystem>

#include "03_network/show/confusion.hpp"
#include "03_network/show/loader_times.hpp"
#include "03_network/training.hpp"

namespace ddp {

// Where the time of a step goes, part by part; and in the file `csv` unless that is empty: part,
// seconds of a step, share of it.
void show_times(const StepTimes& times, const Device& device, const std::filesystem::path& csv);

// The classes of Fashion-MNIST, a row for each: what its pictures were taken for.
void show_confusion(const Confusion& confusion);

void show_loader(const LoaderTimes& times);

}  // namespace ddp
