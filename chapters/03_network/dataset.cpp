#include "03_network/dataset.hpp"

#include <algorithm>

namespace ddp {
namespace {

// The first `count` pictures.
LabelledImages first_of(const LabelledImages& all, std::size_t count) {
    count = std::min(count, all.count());
    return {all.channels,
            all.height,
            all.width,
            {all.pixels.begin(), all.pixels.begin() + count * all.image_size()},
            {all.labels.begin(), all.labels.begin() + count}};
}

}  // namespace

FashionMnist load_data(const CommonOptions& common) {
    FashionMnist data =
        common.data.empty() ? load_fashion_mnist() : load_fashion_mnist(common.data);
    if (common.quick)
        return {first_of(data.train, 6'000), first_of(data.test, 2'000)};
    return data;
}

}  // namespace ddp
