// The gradients of a convolution are convolutions, whatever its shape, stride, padding and dilation:
//   dw = the convolution of x with dy, stride and dilation exchanged, images and channels exchanged;
//   dx = the convolution of dy, spread by the stride and padded, with the flipped kernel.
// A convolution in groups and its gradients are those of the groups side by side.
// All numbers are small integers, so every order of summation gives the same value.
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "tests/api/engines.h"

namespace fusejit {
namespace {

struct Axis {
  std::int64_t in, kernel, stride, low, high, dilation;
  std::int64_t reach() const { return dilation * (kernel - 1); }
  std::int64_t out() const { return (in + low + high - reach() - 1) / stride + 1; }
};

struct Problem {
  std::int64_t images, channels, outputs;
  Axis rows, columns;
  ConvOptions options() const {
    return {.stride = {rows.stride, columns.stride},
            .padding = {rows.low, columns.low, rows.high, columns.high},
            .dilation = {rows.dilation, columns.dilation}};
  }
  std::string str() const {
    std::ostringstream text;
    text << "N=" << images << " C=" << channels << " K=" << outputs;
    for (const Axis& a : {rows, columns}) {
      text << " | in=" << a.in << " kernel=" << a.kernel << " stride=" << a.stride << " padding=" << a.low << ","
           << a.high << " dilation=" << a.dilation;
    }
    return text.str();
  }
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  Axis axis() {
    Axis a{between(1, 9), between(1, 4), between(1, 3), between(0, 3), between(0, 3), between(1, 3)};
    a.in = std::max(a.in, a.reach() + 1 - a.low - a.high);
    return a;
  }
  Problem problem() { return {between(1, 3), between(1, 9), between(1, 20), axis(), axis()}; }
  Tensor integers(const Shape& shape) {
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    for (float& v : values) v = static_cast<float>(between(-3, 3));
    return from_host(values, shape);
  }

 private:
  std::mt19937_64 random_;
};

// x with `low` and `high` cells of zeros along an axis; negative: cells are cut off.
Tensor padded(const Tensor& x, int axis, std::int64_t low, std::int64_t high) {
  Dims before(4), after(4);
  const auto i = static_cast<std::size_t>(axis);
  before[i] = std::max<std::int64_t>(low, 0), after[i] = std::max<std::int64_t>(high, 0);
  const Tensor wide = pad(x, before, after);
  const std::int64_t first = std::max<std::int64_t>(-low, 0);
  return slice(wide, axis, first, first + x.size(axis) + low + high);
}

// x with stride - 1 zeros after every row (column) but the last.
Tensor spread(const Tensor& x, std::int64_t rows, std::int64_t columns) {
  const std::int64_t n = x.size(0), c = x.size(1), h = x.size(2), w = x.size(3);
  const Tensor cells = pad(x.reshape({n, c, h, 1, w, 1}), {0, 0, 0, 0, 0, 0}, {0, 0, 0, rows - 1, 0, columns - 1});
  return padded(padded(cells.reshape({n, c, h * rows, w * columns}), 2, 0, 1 - rows), 3, 0, 1 - columns);
}

Tensor weight_gradient(const Problem& p, const Tensor& x, const Tensor& dy) {
  ConvOptions options = p.options();
  std::swap(options.stride, options.dilation);
  const Tensor wide = conv2d(permute(x, {1, 0, 2, 3}), permute(dy, {1, 0, 2, 3}), options);
  const Tensor dw =
      slice(slice(wide, 2, 0, p.rows.kernel), 3, 0, p.columns.kernel);  // what the stride left over is cut
  return permute(dw, {1, 0, 2, 3});
}

Tensor input_gradient(const Problem& p, const Tensor& dy, const Tensor& w) {
  Tensor wide = spread(dy, p.rows.stride, p.columns.stride);
  for (const int axis : {2, 3}) {
    const Axis& a = axis == 2 ? p.rows : p.columns;
    const std::int64_t before = a.reach() - a.low;
    wide = padded(wide, axis, before, a.in + a.reach() - before - wide.size(axis));
  }
  return conv2d(wide, permute(flip(w, {2, 3}), {1, 0, 2, 3}), {.dilation = {p.rows.dilation, p.columns.dilation}});
}

class ConvolutionIdentities : public testing::OnEveryEngine {
 protected:
  static void check(const Problem& p, Draw& draw) {
    const Tensor x = draw.integers({p.images, p.channels, p.rows.in, p.columns.in}).requires_grad();
    const Tensor w = draw.integers({p.outputs, p.channels, p.rows.kernel, p.columns.kernel}).requires_grad();
    const Tensor y = conv2d(x, w, p.options());
    ASSERT_EQ(y.shape(), (Shape{p.images, p.outputs, p.rows.out(), p.columns.out()}));
    const Tensor dy = draw.integers(y.shape());
    const std::vector<Tensor> g = grad({y}, {dy}, {x, w});
    ASSERT_EQ(g[0].shape(), x.shape());
    ASSERT_EQ(g[1].shape(), w.shape());
    expect_equal(g[0], input_gradient(p, dy, w), "dx");
    expect_equal(g[1], weight_gradient(p, x, dy), "dw");
  }
  static void expect_equal(const Tensor& got, const Tensor& want, const char* what) {
    ASSERT_EQ(got.shape(), want.shape()) << what;
    const std::vector<float> a = got.to_vector<float>(), b = want.to_vector<float>();
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-3) << what << ", element " << i;
  }
};
INSTANTIATE_TEST_SUITE_P(Engines, ConvolutionIdentities, ::testing::ValuesIn(testing::kEveryEngine), testing::name_of);

TEST_P(ConvolutionIdentities, OfTheTextsShapes) {
  Draw draw(1);
  const Axis valid_by_2{3, 2, 1, 0, 0, 1}, same_2{2, 2, 1, 0, 1, 1}, same_3{3, 2, 1, 0, 1, 1};
  for (const Problem& p : {Problem{1, 1, 1, valid_by_2, valid_by_2}, Problem{1, 3, 3, same_2, same_3}}) {
    SCOPED_TRACE(p.str());
    check(p, draw);
  }
}

TEST_P(ConvolutionIdentities, OfRandomShapes) {
  constexpr int kProblems = 12;
  Draw draw(20);
  for (int i = 0; i < kProblems; ++i) {
    const Problem p = draw.problem();
    SCOPED_TRACE(p.str());
    check(p, draw);
  }
}

TEST_P(ConvolutionIdentities, GroupsStandSideBySide) {
  struct Groups {
    std::int64_t count, channels, outputs;
  };
  Draw draw(30);
  for (const Groups& g : {Groups{21, 1, 1}, Groups{32, 1, 1}, Groups{5, 1, 2}, Groups{3, 2, 8}, Groups{2, 3, 18},
                          Groups{7, 3, 3}, Groups{4, 4, 4}, Groups{2, 9, 1}}) {
    Problem p = draw.problem();
    p.images = 2, p.channels = g.count * g.channels, p.outputs = g.count * g.outputs;
    SCOPED_TRACE(p.str() + " groups=" + std::to_string(g.count));
    const Tensor x = draw.integers({p.images, p.channels, p.rows.in, p.columns.in}).requires_grad();
    const Tensor w = draw.integers({p.outputs, g.channels, p.rows.kernel, p.columns.kernel}).requires_grad();
    const ConvOptions options = p.options();
    ConvOptions grouped = options;
    grouped.groups = g.count;
    const Tensor y = conv2d(x, w, grouped), dy = draw.integers(y.shape());
    const std::vector<Tensor> all = grad({y}, {dy}, {x, w});
    for (const std::int64_t i : {std::int64_t{0}, g.count / 2, g.count - 1}) {
      const auto channels = [&](const Tensor& t) { return slice(t, 1, i * g.channels, (i + 1) * g.channels); };
      const auto outputs = [&](const Tensor& t, int axis) {
        return slice(t, axis, i * g.outputs, (i + 1) * g.outputs);
      };
      const Tensor own_x = channels(x), own_w = outputs(w, 0), own_y = conv2d(own_x, own_w, options);
      const std::vector<Tensor> own = grad({own_y}, {outputs(dy, 1)}, {own_x, own_w});
      expect_equal(outputs(y, 1), own_y, "y");
      expect_equal(channels(all[0]), own[0], "dx");
      expect_equal(outputs(all[1], 0), own[1], "dw");
    }
  }
}

}  // namespace
}  // namespace fusejit
