#include "24_mesh/mesh_shape.hpp"

#include <charconv>

#include "common/report/options.hpp"

namespace ddp {

int MeshShape::size(Axis axis) const {
    return axis == Axis::dp ? dp : axis == Axis::pp ? pp : tp;
}

std::string MeshShape::text() const {
    return std::to_string(dp) + " x " + std::to_string(pp) + " x " + std::to_string(tp);
}

MeshShape mesh_shape_of(const std::string& text) {
    MeshShape shape;
    const char* at = text.data();
    const char* const end = at + text.size();
    for (int* size : {&shape.dp, &shape.pp, &shape.tp}) {
        if (size != &shape.dp && (at == end || *at++ != 'x'))
            at = nullptr;
        const auto [rest, error] =
            at ? std::from_chars(at, end, *size)
               : std::from_chars_result{nullptr, std::errc::invalid_argument};
        if (error != std::errc() || *size < 1 || *size > 64)
            throw OptionError(
                "A mesh is three numbers, replicas x stages x parts, such as 2x2x2; '" + text +
                "' is not.");
        at = rest;
    }
    if (at != end)
        throw OptionError("A mesh has three axes; '" + text + "' goes on after the third.");
    return shape;
}

}  // namespace ddp
