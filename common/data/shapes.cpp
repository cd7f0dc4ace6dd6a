#include "common/data/shapes.hpp"

#include <algorithm>
#include <initializer_list>
#include <span>
#include <utility>

#include "common/data/random.hpp"

namespace ddp {
namespace {

constexpr int canvas = 32;

struct Point {
    float x, y;
};

// Draws on one picture, later shapes over earlier ones. The drawing has its own coordinates: (0, 0)
// is its middle, x goes to the right and y down, and 1 is half of its extent. All arithmetic is
// in float, by +, -, *, / and comparisons only, so the bits are the same on every machine.
class Sketch {
  public:
    // Places the drawing: its middle at `middle` (in pixels), with `scale` pixels to a unit. If
    // `mirrored`, x goes to the left.
    Sketch(std::span<std::uint8_t> pixels, Point middle, float scale, bool mirrored)
        : pixels_(pixels), middle_(middle), scale_(scale), direction_(mirrored ? -1.0f : 1.0f) {}

    void ellipse(Point center, Point radius, float shade) {
        fill({center.x - radius.x, center.y - radius.y}, {center.x + radius.x, center.y + radius.y},
             shade, [&](Point p) {
                 const float x = (p.x - center.x) / radius.x;
                 const float y = (p.y - center.y) / radius.y;
                 return x * x + y * y <= 1;
             });
    }

    // Fills a convex polygon. Its corners are given clockwise, as seen on the picture.
    void polygon(std::initializer_list<Point> corners, float shade) {
        Point low = *corners.begin(), high = low;
        for (const Point& c : corners) {
            low = {std::min(low.x, c.x), std::min(low.y, c.y)};
            high = {std::max(high.x, c.x), std::max(high.y, c.y)};
        }
        fill(low, high, shade, [&](Point p) {
            const Point* a = corners.end() - 1;
            for (const Point& b : corners) {
                if ((b.x - a->x) * (p.y - a->y) < (b.y - a->y) * (p.x - a->x))
                    return false;  // left of the edge from a to b
                a = &b;
            }
            return true;
        });
    }

    // Draws a line from `a` to `b`; its ends are vertical and `width` high.
    void stroke(Point a, Point b, float width, float shade) {
        if (a.x > b.x)
            std::swap(a, b);  // the corners below are clockwise from left to right only
        const float half = width / 2;
        polygon({{a.x, a.y - half}, {b.x, b.y - half}, {b.x, b.y + half}, {a.x, a.y + half}},
                shade);
    }

  private:
    // Blends `shade` into each pixel by the fraction of the pixel's sample points that lie inside
    // the shape. The whole shape lies between the corners `low` and `high`.
    template <class Inside>
    void fill(Point low, Point high, float shade, Inside inside) {
        constexpr int samples = 4;  // sample points per pixel, in each direction
        const Point a = to_pixels(low), b = to_pixels(high);
        const int left = clamped(std::min(a.x, b.x)), right = clamped(std::max(a.x, b.x) + 1);
        const int top = clamped(a.y), bottom = clamped(b.y + 1);
        for (int row = top; row < bottom; row++)
            for (int column = left; column < right; column++) {
                int hits = 0;
                for (int s = 0; s < samples * samples; s++)
                    hits += inside(to_drawing({column + (s % samples + 0.5f) / samples,
                                               row + (s / samples + 0.5f) / samples}));
                std::uint8_t& pixel = pixels_[row * canvas + column];
                const float share = static_cast<float>(hits) / (samples * samples);
                pixel = static_cast<std::uint8_t>(pixel + (shade - pixel) * share + 0.5f);
            }
    }

    Point to_pixels(Point p) const {
        return {middle_.x + direction_ * scale_ * p.x, middle_.y + scale_ * p.y};
    }
    Point to_drawing(Point p) const {
        return {(p.x - middle_.x) / scale_ * direction_, (p.y - middle_.y) / scale_};
    }
    static int clamped(float pixel) {
        return static_cast<int>(std::clamp(pixel, 0.0f, static_cast<float>(canvas)));
    }

    std::span<std::uint8_t> pixels_;
    Point middle_;
    float scale_;
    float direction_;
};

// Fills the picture with a sky that is lighter towards the ground and has a little grain. Shades
// must be from 5 to 250.
void draw_sky(std::span<std::uint8_t> pixels, float top, float bottom, Random& random) {
    for (int row = 0; row < canvas; row++)
        for (int column = 0; column < canvas; column++) {
            const float shade = top + (bottom - top) * static_cast<float>(row) / canvas;
            const float grain = random.uniform(-4, 4);
            pixels[row * canvas + column] = static_cast<std::uint8_t>(shade + grain + 0.5f);
        }
}

// Returns a random place for the middle of a drawing that reaches `extent` pixels to each side.
Point random_place(Point extent, Random& random) {
    const float x = random.uniform(extent.x, canvas - extent.x);
    const float y = random.uniform(extent.y, canvas - extent.y);
    return {x, y};
}

// Draws a cat's face: pointed ears, slit pupils in bright eyes, whiskers. Night.
void draw_cat(std::span<std::uint8_t> pixels, Random& random) {
    const float night = random.uniform(12, 35);
    const float fur = night + random.uniform(50, 85);
    const float size = random.uniform(9.5f, 13);
    draw_sky(pixels, night, night + 10, random);
    Sketch sketch(pixels, random_place({1.2f * size, 1.05f * size}, random), size, false);

    for (const float s : {-1.0f, 1.0f}) {  // an ear: a triangle, clockwise on either side
        const Point outer{0.88f * s, 0.1f}, tip{0.82f * s, -1}, inner{0.12f * s, -0.55f};
        const Point low{0.7f * s, -0.25f}, high{0.72f * s, -0.75f}, near{0.36f * s, -0.5f};
        if (s < 0) {
            sketch.polygon({outer, tip, inner}, fur);
            sketch.polygon({low, high, near}, fur - 35);
        } else {
            sketch.polygon({inner, tip, outer}, fur);
            sketch.polygon({near, high, low}, fur - 35);
        }
    }
    sketch.ellipse({0, 0.15f}, {0.92f, 0.8f}, fur);
    for (const float s : {-1.0f, 1.0f}) {
        sketch.ellipse({0.4f * s, 0}, {0.24f, 0.22f}, 215);
        sketch.ellipse({0.4f * s, 0}, {0.08f, 0.22f}, 5);
        for (const float end : {0.3f, 0.5f, 0.7f})
            sketch.stroke({0.35f * s, 0.48f}, {1.15f * s, end}, 0.05f, fur + 75);
    }
    for (const float x : {-0.16f, 0.0f, 0.16f})  // a tabby's forehead
        sketch.stroke({x - 0.04f, -0.46f}, {x + 0.04f, -0.46f}, 0.3f, fur - 30);
    sketch.polygon({{-0.13f, 0.3f}, {0.13f, 0.3f}, {0, 0.46f}}, 10);
    for (const float s : {-1.0f, 1.0f}) {
        sketch.stroke({0, 0.5f}, {0.14f * s, 0.66f}, 0.11f, 15);
        sketch.stroke({0.14f * s, 0.66f}, {0.28f * s, 0.58f}, 0.11f, 15);
    }
}

// Draws a dog's face: hanging ears, a light snout with a large nose, the tongue out. Dusk.
void draw_dog(std::span<std::uint8_t> pixels, Random& random) {
    const float dusk = random.uniform(75, 100);
    const float fur = dusk + random.uniform(50, 80);
    const float ears = random.uniform(30, 60);
    const float size = random.uniform(9.5f, 13);
    const bool mirrored = random.below(2) == 1;
    draw_sky(pixels, dusk, dusk + 20, random);
    Sketch sketch(pixels, random_place({1.12f * size, 1.05f * size}, random), size, mirrored);

    sketch.ellipse({0, -0.1f}, {0.78f, 0.85f}, fur);
    if (random.below(2) == 1)  // a patch around one eye
        sketch.ellipse({0.36f, -0.32f}, {0.3f, 0.34f}, fur - 45);
    for (const float s : {-1.0f, 1.0f}) {  // an ear: narrow where it grows, round where it hangs
        sketch.ellipse({0.72f * s, -0.45f}, {0.24f, 0.4f}, ears);
        sketch.ellipse({0.86f * s, 0.05f}, {0.25f, 0.55f}, ears);
    }
    sketch.ellipse({0, 0.78f}, {0.19f, 0.27f}, dusk - 40);
    sketch.ellipse({0, 0.38f}, {0.5f, 0.4f}, fur + 55);
    sketch.ellipse({0, 0.2f}, {0.24f, 0.17f}, 8);
    sketch.stroke({-0.04f, 0.5f}, {0.04f, 0.5f}, 0.36f, 25);
    for (const float s : {-1.0f, 1.0f})
        sketch.ellipse({0.34f * s, -0.3f}, {0.13f, 0.15f}, 8);
}

// Draws a car from the side: a cabin with two windows on a body with two wheels. Sun.
void draw_car(std::span<std::uint8_t> pixels, Random& random) {
    const float sky = random.uniform(205, 230);
    const float paint = random.uniform(90, 175);
    const float size = random.uniform(11, 14.5f);
    draw_sky(pixels, sky, sky + 15, random);
    const bool mirrored = random.below(2) == 1;
    Sketch sketch(pixels, random_place({1.02f * size, 0.68f * size}, random), size, mirrored);

    sketch.ellipse({0, 0.55f}, {1, 0.1f}, sky - 70);  // its shadow
    sketch.polygon({{-0.62f, -0.6f}, {0.2f, -0.6f}, {0.58f, -0.05f}, {-0.85f, -0.05f}}, paint);
    sketch.polygon({{-0.57f, -0.48f}, {-0.22f, -0.48f}, {-0.22f, -0.08f}, {-0.7f, -0.08f}}, 245);
    sketch.polygon({{-0.1f, -0.48f}, {0.14f, -0.48f}, {0.42f, -0.08f}, {-0.1f, -0.08f}}, 245);
    sketch.polygon({{-1, -0.1f}, {0.8f, -0.1f}, {1, 0.05f}, {1, 0.38f}, {-1, 0.38f}}, paint);
    sketch.ellipse({0.92f, 0.1f}, {0.1f, 0.09f}, 250);
    for (const float x : {-0.55f, 0.55f}) {
        sketch.ellipse({x, 0.36f}, {0.28f, 0.28f}, 20);
        sketch.ellipse({x, 0.36f}, {0.12f, 0.12f}, 210);
    }
}

}  // namespace

LabelledImages make_shapes(std::size_t count, std::uint64_t seed) {
    constexpr std::array draw = {draw_cat, draw_dog, draw_car};
    LabelledImages images{1, canvas, canvas, {}, {}};
    images.pixels.resize(count * images.image_size());
    images.labels.resize(count);
    Random random(seed);
    for (std::size_t i = 0; i < count; i++) {
        images.labels[i] = static_cast<std::uint8_t>(i % draw.size());
        draw[i % draw.size()](
            std::span(images.pixels).subspan(i * images.image_size(), images.image_size()), random);
    }
    return images;
}

}  // namespace ddp
