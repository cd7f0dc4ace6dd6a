#pragma once
// The tables of a training run.
#include <filesystem>

#include "03_network/show/confusion.hpp"
#include "03_network/show/loader_times.hpp"
#include "03_network/training.hpp"

namespace ddp {

// Prints how many numbers a network learns.
void show_size(const std::string& network, const Parameters& parameters);

// Prints where the time of a step goes, part by part. Writes the same to the file `csv`, unless
// that is empty: part, seconds per step, share of the step.
void show_times(const StepTimes& times, const Device& device, const std::filesystem::path& csv);

// Returns what a class is called: in Fashion-MNIST by its name, otherwise by its number.
std::string class_name(int number, int classes);

// Prints a row for each class: the classes that its pictures were taken for.
// Writes the same to the file `csv`, unless that is empty.
void show_confusion(const Confusion& confusion, const std::filesystem::path& csv);

// Prints what pinned memory and prefetching gain.
void show_loader(const LoaderTimes& times);

}  // namespace ddp
