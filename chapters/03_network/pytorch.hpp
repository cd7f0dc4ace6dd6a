#pragma once
// PyTorch in a process of its own, measured round by round: tests/golden/pytorch_train.py.
#include <sys/types.h>

#include <cstdio>
#include <optional>
#include <string>

namespace ddp {

class Pytorch {
  public:
    // Starts the script with the first python3 that has PyTorch; nothing if none has, or if the
    // script is not where it was when this was built. Returns when the warm-up is done.
    static std::optional<Pytorch> find(const std::string& model, int batch);

    Pytorch(Pytorch&& other) noexcept;
    Pytorch& operator=(Pytorch&&) = delete;
    ~Pytorch();

    // Seconds a step. Throws std::runtime_error if the process has ended.
    double run(int steps);

    const std::string& version() const { return version_; }  // "PyTorch 1.13.0, one thread a rank"

  private:
    Pytorch() = default;
    bool start(const std::string& python, const std::string& model, int batch);
    std::string read_line();

    pid_t process_ = -1;
    std::FILE* to_ = nullptr;
    std::FILE* from_ = nullptr;
    std::string version_;
};

}  // namespace ddp
