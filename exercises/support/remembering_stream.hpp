#pragma once
// A stream that remembers the shapes of the launches on it, on a GPU as well.
#include <vector>

#include "common/gpu/gpu.hpp"

namespace ddp {

class RememberingStream : public Stream {
  public:
    std::vector<LaunchShape> launches;
};

template <class... Parameters, class... Arguments>
void launch(RememberingStream& stream, const LaunchShape& shape, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
    stream.launches.push_back(shape);
    launch(static_cast<cudaStream_t>(stream), shape, kernel,
           static_cast<Arguments&&>(arguments)...);
}

}  // namespace ddp
