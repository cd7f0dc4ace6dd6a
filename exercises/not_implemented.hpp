#pragma once
// What a task says that nobody has begun.
#include <stdexcept>
#include <string>

namespace ddp {

class NotImplemented : public std::runtime_error {
  public:
    explicit NotImplemented(const std::string& task)
        : std::runtime_error("Task " + task + " is not implemented yet.") {}
};

}  // namespace ddp
