#include "03_network/models.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "03_network/layers/batch_norm2d.hpp"
#include "03_network/layers/conv2d.hpp"
#include "03_network/layers/without_parameters.hpp"
#include "03_network/linear.hpp"

namespace ddp {
namespace {

// Returns the first `count` pictures, or all if there are fewer.
LabelledImages first_of(const LabelledImages& all, std::size_t count) {
    count = std::min(count, all.count());
    return {all.channels,
            all.height,
            all.width,
            {all.pixels.begin(), all.pixels.begin() + count * all.image_bytes()},
            {all.labels.begin(), all.labels.begin() + count},
            all.classes,
            all.are_numbers};
}

}  // namespace

std::unique_ptr<Sequential> make_mlp(Device& device, Random& random,
                                     const std::vector<int>& widths) {
    auto mlp = std::make_unique<Sequential>("mlp");
    mlp->add<Flatten>("flatten");
    for (std::size_t i = 1; i < widths.size(); i++) {
        const std::string number = std::to_string(i);
        mlp->add<Linear>("linear" + number, device, widths[i - 1], widths[i], random);
        if (i + 1 < widths.size())
            mlp->add<Relu>("relu" + number);
    }
    return mlp;
}

std::vector<int> mlp_widths(const LabelledImages& samples, const std::vector<int>& hidden) {
    std::vector<int> widths{static_cast<int>(samples.image_size())};
    widths.insert(widths.end(), hidden.begin(), hidden.end());
    widths.push_back(samples.classes);
    return widths;
}

std::unique_ptr<Sequential> make_cnn(Device& device, Random& random, int height, int width,
                                     int classes) {
    auto cnn = std::make_unique<Sequential>("cnn");
    // [batch, 1, 28, 28] -> [batch, 32, 14, 14]
    cnn->add<Conv2d>("conv1", device, Conv2dShape{1, 32, 3, 1, 1}, random);
    cnn->add<BatchNorm2d>("norm1", device, 32);
    cnn->add<Relu>("relu1");
    cnn->add<MaxPool2d>("pool1", 2);
    // -> [batch, 64, 7, 7]
    cnn->add<Conv2d>("conv2", device, Conv2dShape{32, 64, 3, 1, 1}, random);
    cnn->add<BatchNorm2d>("norm2", device, 64);
    cnn->add<Relu>("relu2");
    cnn->add<MaxPool2d>("pool2", 2);
    // -> [batch, 3136] -> [batch, 10]
    cnn->add<Flatten>("flatten");
    cnn->add<Linear>("linear", device, 64 * (height / 4) * (width / 4), classes, random);
    return cnn;
}

std::unique_ptr<Sequential> make_model(const std::string& name, Device& device, Random& random) {
    if (name == "mlp")
        return make_mlp(device, random);
    if (name == "cnn")
        return make_cnn(device, random);
    throw std::invalid_argument("there is no model '" + name + "'; there are mlp and cnn");
}

std::unique_ptr<Sequential> make_model(const std::string& name, Device& device, Random& random,
                                       const LabelledImages& samples) {
    if (name != "cnn")
        return make_mlp(device, random, mlp_widths(samples));
    if (samples.are_numbers)
        throw OptionError("--model cnn needs pictures, and --data is a table: take --model mlp.");
    if (std::min(samples.height, samples.width) < 4)
        throw OptionError(
            "--model cnn halves a picture twice, so it needs 4 x 4 pixels at least: "
            "take --model mlp.");
    return make_cnn(device, random, static_cast<int>(samples.height),
                    static_cast<int>(samples.width), samples.classes);
}

FashionMnist load_data(const CommonOptions& common) {
    FashionMnist data = common.data.empty()                 ? load_fashion_mnist()
                        : common.data.extension() == ".csv" ? load_table(common.data)
                                                            : load_fashion_mnist(common.data);
    if (common.quick)
        return {first_of(data.train, 6'000), first_of(data.test, 2'000), data.about};
    return data;
}

void require_batch(int batch, const LabelledImages& images) {
    if (std::cmp_greater(batch, images.count()))
        throw OptionError("--batch " + std::to_string(batch) + " is more than the " +
                          std::to_string(images.count()) + " samples in the data set: take fewer.");
}

}  // namespace ddp
