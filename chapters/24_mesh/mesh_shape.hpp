#pragma once
// The sizes of a mesh: replicas x stages x parts.
#include <string>

namespace ddp {

enum class Axis { dp, pp, tp };

struct MeshShape {
    int dp = 1, pp = 1, tp = 1;

    int ranks() const { return dp * pp * tp; }
    int size(Axis axis) const;
    std::string text() const;  // "2 x 2 x 2"
    bool operator==(const MeshShape&) const = default;
};

// Returns the shape that a text such as "2x1x4" names, replicas first. Throws OptionError for any
// other text.
MeshShape mesh_shape_of(const std::string& text);

}  // namespace ddp
