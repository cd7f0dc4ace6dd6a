#pragma once
// A small data set in the files of Fashion-MNIST, that a network soon learns.
#include <filesystem>

#include "tests/common/report/temporary_folder.hpp"

namespace ddp::test {

// The size of pictures, and their classes.
struct PictureKind {
    int height = 28, width = 28, classes = 10;
};

// For --data: pictures whose class c has a bright stripe at line 2 c. Gone with the object.
class Pictures {
  public:
    Pictures(int train, int test, PictureKind kind = {});
    std::string folder() const { return (folder_ / "").string(); }
    std::filesystem::path operator/(const std::string& file) const { return folder_ / file; }

  private:
    TemporaryFolder folder_;
};

}  // namespace ddp::test
