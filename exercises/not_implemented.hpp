#pragma once
// The error of a task that has not been begun.
#include <stdexcept>
#include <string>

namespace ddp {

class NotImplemented : public std::runtime_error {
  public:
    explicit NotImplemented(const std::string& task)
        : std::runtime_error("Task " + task + " is not implemented yet.") {}
};

}  // namespace ddp
