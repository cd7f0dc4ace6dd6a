#include "24_mesh/mesh_shape.hpp"

#include <cstdio>

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
    char rest = 0;
    const int read =
        std::sscanf(text.c_str(), "%dx%dx%d%c", &shape.dp, &shape.pp, &shape.tp, &rest);
    for (const int size : {shape.dp, shape.pp, shape.tp})
        if (read != 3 || size < 1 || size > 64)
            throw OptionError(
                "A mesh is three numbers, replicas x stages x parts, such as 2x2x2; '" + text +
                "' is not.");
    return shape;
}

}  // namespace ddp
