// The worked kernels at toy size in the interpreter against plain loops, in every order of tasks and lanes.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/kernel/philox.h"
#include "tests/unit/kernel/run.h"

namespace fusejit::testing {
namespace {

using ir::Kernel;
using ir::Scalar;

// The element at `at` of a row-major array, 0 outside.
template <class T>
class View {
 public:
  View(const T* data, std::vector<std::int64_t> dims) : data_(data), dims_(std::move(dims)) {}
  template <class... Is>
  T operator()(Is... is) const {
    std::int64_t flat = 0, d = 0;
    bool inside = true;
    for (std::int64_t i : {static_cast<std::int64_t>(is)...}) {
      const std::int64_t extent = dims_[static_cast<std::size_t>(d++)];
      inside = inside && i >= 0 && i < extent;
      flat = flat * extent + i;
    }
    return inside ? data_[flat] : T(0);
  }

 private:
  const T* data_;
  std::vector<std::int64_t> dims_;
};

struct Case {
  Kernel kernel;
  std::vector<Bytes> buffers;
  const float* f32(std::size_t i) const { return buffers[i].as<float>(); }
  View<float> view(std::size_t i) const { return {f32(i), dims(i)}; }
  std::vector<std::int64_t> dims(std::size_t i) const {
    for (const ir::KernelParam& p : kernel.params)
      if (p.memory >= 0 && i-- == 0) return kernel.memories[static_cast<std::size_t>(p.memory)].dims;
    return {};
  }
};

// Loads the kernel and fills its f32 buffers with numbers in [-1, 1], quarters if `coarse`.
Case prepare(const std::string& file, bool coarse = false) {
  Case r{worked_kernel("toy/" + file), {}};
  r.buffers = buffers_of(r.kernel);
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::size_t i = 0;
  for (const ir::KernelParam& p : r.kernel.params) {
    if (p.memory < 0) continue;
    const ir::Memory& m = r.kernel.memories[static_cast<std::size_t>(p.memory)];
    if (m.dtype == DType::f32)
      for (std::int64_t e = 0; e < m.elements(); ++e) {
        const float v = uniform(random);
        r.buffers[i].as<float>()[e] = coarse ? std::round(v * 4) / 4 : v;
      }
    if (m.dtype == DType::bf16 || m.dtype == DType::u32)  // u32: pairs of bf16
      for (std::int64_t e = 0; e < bytes(m.dtype, m.elements()) / 2; ++e)
        r.buffers[i].as<std::uint16_t>()[e] = ir::f32_to_bf16(uniform(random));
    ++i;
  }
  return r;
}

float relu(float x) { return x > 0 ? x : 0; }

TEST(InterpretWorked, ScaleRelu) {
  for (const char* file : {"a_scale_relu.kir", "a_scale_relu_cuda.kir"}) {
    Case r = prepare(file);
    run_in_all_orders(r.kernel, r.buffers, {Scalar::of(1.5f)});
    for (std::int64_t i = 0; i < 1003; ++i) ASSERT_EQ(r.f32(1)[i], relu(r.f32(0)[i] * 1.5f)) << file << " " << i;
  }
}

TEST(InterpretWorked, BiasReluBits) {
  Case r = prepare("b_bias_relu_bits.kir");
  r.buffers[0].as<std::uint16_t>()[5] = 0x7fc0;  // NaN: kept, and its gradient passes
  run_in_all_orders(r.kernel, r.buffers);
  for (int p = 0; p < 24; ++p)
    for (int c = 0; c < 64; ++c) {
      const int e = p * 64 + c;
      const float sum = ir::bf16_to_f32(r.buffers[0].as<std::uint16_t>()[e]) + r.f32(1)[c];
      const bool bit = r.buffers[3].as<std::uint8_t>()[e / 8] >> (e % 8) & 1;
      ASSERT_EQ(bit, !(sum <= 0)) << e;
      const std::uint16_t y = r.buffers[2].as<std::uint16_t>()[e];
      if (std::isnan(sum)) {
        ASSERT_TRUE(std::isnan(ir::bf16_to_f32(y)));
      } else {
        ASSERT_EQ(y, ir::f32_to_bf16(relu(sum))) << e;
      }
    }
}

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments(const float* x, std::int64_t rows, std::int64_t columns, std::int64_t c) {
  Moments m;
  for (std::int64_t p = 0; p < rows; ++p) m.mean += x[p * columns + c] / static_cast<double>(rows);
  for (std::int64_t p = 0; p < rows; ++p) {
    const double d = x[p * columns + c] - m.mean;
    m.variance += d * d / static_cast<double>(rows);
  }
  return m;
}

TEST(InterpretWorked, BatchNorm) {
  for (const float offset : {0.0f, 1000.0f}) {
    for (const bool cuda : {false, true}) {
      Case r = prepare(cuda ? "c_bn_stats_cuda.kir" : "c_bn_train.kir");
      for (int e = 0; e < 64 * 32; ++e) r.buffers[0].as<float>()[e] += offset;
      run_in_all_orders(r.kernel, r.buffers);
      const std::size_t mean = cuda ? 1 : 4, inv = cuda ? 2 : 5;
      for (int c = 0; c < 32; ++c) {
        const Moments m = moments(r.f32(0), 64, 32, c);
        const double inverse = 1 / std::sqrt(m.variance + 1e-5);
        ASSERT_NEAR(r.f32(mean)[c], m.mean, 1e-6 + std::abs(m.mean) * 1e-7) << c;
        ASSERT_NEAR(r.f32(inv)[c], inverse, inverse * 1e-5) << c;
        for (int p = 0; !cuda && p < 64; ++p) {
          const double y = (r.f32(0)[p * 32 + c] - m.mean) * inverse * r.f32(1)[c] + r.f32(2)[c];
          ASSERT_NEAR(r.f32(3)[p * 32 + c], y, 1e-5 + std::abs(m.mean) * 1e-6);
        }
      }
    }
  }
}

TEST(InterpretWorked, Softmax) {
  Case r = prepare("d_softmax.kir");
  r.buffers[0].as<float>()[3] = 80;  // one large value: no overflow
  run_in_all_orders(r.kernel, r.buffers);
  for (int row = 0; row < 12; ++row) {
    const float* x = r.f32(0) + row * 41;
    double sum = 0;
    const double most = *std::max_element(x, x + 41);
    for (int c = 0; c < 41; ++c) sum += std::exp(x[c] - most);
    for (int c = 0; c < 41; ++c) ASSERT_NEAR(r.f32(1)[row * 41 + c], std::exp(x[c] - most) / sum, 1e-6);
  }
}

TEST(InterpretWorked, ArgmaxTakesTheFirst) {
  Case r = prepare("e_argmax.kir", true);  // quarters: many equals
  float* x = r.buffers[0].as<float>();
  x[62 + 40] = x[62 + 50] = NAN;
  for (int c = 0; c < 62; ++c) x[2 * 62 + c] = -INFINITY;
  run_in_all_orders(r.kernel, r.buffers);
  for (int row = 0; row < 15; ++row) {
    const auto wins = [&](float a, float b) { return a > b || (std::isnan(a) && !std::isnan(b)); };
    int best = 0;
    for (int c = 1; c < 62; ++c)
      if (wins(x[row * 62 + c], x[row * 62 + best])) best = c;
    EXPECT_EQ(r.buffers[1].as<std::int64_t>()[row], best) << row;
  }
}

TEST(InterpretWorked, Convolution) {
  Case r = prepare("f_conv3x3_bn.kir");
  run_in_all_orders(r.kernel, r.buffers);
  const auto x = r.view(0), w = r.view(3), y = r.view(5);
  for (int n = 0; n < 2; ++n)
    for (int p = 0; p < 8; ++p)
      for (int q = 0; q < 6; ++q)
        for (int k = 0; k < 64; ++k) {
          double sum = r.f32(4)[k];
          for (int t = 0; t < 9; ++t) {
            const int h = p + t / 3 - 1, v = q + t % 3 - 1;
            if (h < 0 || h >= 8 || v < 0 || v >= 6) continue;
            for (int c = 0; c < 16; ++c)
              sum += relu(std::fma(x(n, h, v, c), r.f32(1)[c], r.f32(2)[c])) * w(k / 32, t / 3, t % 3, c, k % 32);
          }
          ASSERT_NEAR(y(n, p, q, k), sum, 1e-4);
        }
  for (int k = 0; k < 64; ++k) {
    const Moments m = moments(r.f32(5), 2 * 8 * 6, 64, k);
    EXPECT_NEAR(r.f32(6)[k], m.mean, 1e-5);
    EXPECT_NEAR(r.f32(7)[k], m.variance * 96, 1e-3);  // M2
  }
}

TEST(InterpretWorked, ConvolutionWeightGradient) {
  Case r = prepare("g_conv3x3_wgrad.kir");
  run_in_all_orders(r.kernel, r.buffers);
  const auto x = r.view(0), dy = r.view(1), dw = r.view(2);
  for (int k = 0; k < 64; ++k)
    for (int t = 0; t < 9; ++t)
      for (int c = 0; c < 16; ++c) {
        double sum = 0;
        for (int n = 0; n < 4; ++n)
          for (int p = 0; p < 8; ++p)
            for (int q = 0; q < 6; ++q) sum += x(n, p + t / 3 - 1, q + t % 3 - 1, c) * dy(n, p, q, k);
        ASSERT_NEAR(dw(k / 32, t / 3, t % 3, c, k % 32), sum, 1e-3);
      }
}

TEST(InterpretWorked, Winograd) {
  Case r = prepare("h_winograd.kir");
  // U = G g G^T of a random 3x3 filter for each pair of channels.
  const double g[6][3] = {{1.0 / 4, 0, 0},
                          {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                          {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                          {1.0 / 24, 1.0 / 12, 1.0 / 6},
                          {1.0 / 24, -1.0 / 12, 1.0 / 6},
                          {0, 0, 1}};
  const auto filter = [](int k, int c, int t) { return std::sin(k * 7.0 + c * 3.0 + t); };
  for (int k = 0; k < 64; ++k)
    for (int c = 0; c < 16; ++c)
      for (int e = 0; e < 36; ++e) {
        double sum = 0;
        for (int t = 0; t < 9; ++t) sum += g[e / 6][t / 3] * filter(k, c, t) * g[e % 6][t % 3];
        r.buffers[3].as<float>()[((k / 32 * 36 + e) * 16 + c) * 32 + k % 32] = static_cast<float>(sum);
      }
  run_in_all_orders(r.kernel, r.buffers);
  const auto x = r.view(0), y = r.view(5);
  for (int n = 0; n < 2; ++n)
    for (int p = 0; p < 16; ++p)
      for (int q = 0; q < 8; ++q)
        for (int k = 0; k < 64; ++k) {
          double sum = r.f32(4)[k];
          for (int t = 0; t < 9; ++t) {
            const int h = p + t / 3 - 1, v = q + t % 3 - 1;
            if (h < 0 || h >= 16 || v < 0 || v >= 8) continue;
            for (int c = 0; c < 16; ++c)
              sum += relu(std::fma(x(n, h, v, c), r.f32(1)[c], r.f32(2)[c])) * filter(k, c, t);
          }
          ASSERT_NEAR(y(n, p, q, k), std::max(sum, 0.0), 1e-3);
        }
}

// The window's first maximum, or the first NaN, as h * 6 + w of the input.
int first_maximum(const View<float>& x, int n, int p, int q, int c) {
  int best = -1;
  float value = 0;
  for (int h = std::max(0, 2 * p - 1); h < std::min(8, 2 * p + 2); ++h)
    for (int w = std::max(0, 2 * q - 1); w < std::min(6, 2 * q + 2); ++w) {
      const float v = x(n, h, w, c);
      if (best < 0 || v > value || (std::isnan(v) && !std::isnan(value))) best = h * 6 + w, value = v;
    }
  return best;
}

TEST(InterpretWorked, MaxPool) {
  Case r = prepare("i_maxpool.kir", true);
  r.buffers[0].as<float>()[777] = NAN;
  run_in_all_orders(r.kernel, r.buffers);
  const auto x = r.view(0), y = r.view(1);
  for (int e = 0; e < 2 * 4 * 3 * 32; ++e) {
    const int n = e / 384, p = e / 96 % 4, q = e / 32 % 3, c = e % 32, at = first_maximum(x, n, p, q, c);
    const float expected = x(n, at / 6, at % 6, c);
    ASSERT_TRUE(y(n, p, q, c) == expected || (std::isnan(expected) && std::isnan(y(n, p, q, c)))) << e;
  }
}

TEST(InterpretWorked, MaxPoolGradient) {
  Case r = prepare("i_maxpool_grad.kir", true);
  r.buffers[0].as<float>()[777] = NAN;
  run_in_all_orders(r.kernel, r.buffers);
  const auto x = r.view(0), dy = r.view(1);
  std::vector<float> dx(2 * 8 * 6 * 32);
  for (int e = 0; e < 2 * 4 * 3 * 32; ++e) {
    const int n = e / 384, p = e / 96 % 4, q = e / 32 % 3, c = e % 32;
    dx[static_cast<std::size_t>((n * 48 + first_maximum(x, n, p, q, c)) * 32 + c)] +=
        dy(n, p, q, c);  // quarters: exact
  }
  for (std::size_t e = 0; e < dx.size(); ++e) ASSERT_EQ(r.f32(2)[e], dx[e]) << e;
}

bool kept(std::int64_t e, std::int64_t stream, std::int64_t seed) {
  return ir::philox(e / 4, stream, seed)[static_cast<std::size_t>(e % 4)] >> 8 >= 1u << 23;
}

TEST(InterpretWorked, Dropout) {
  Case r = prepare("j_relu_dropout.kir");
  run_in_all_orders(r.kernel, r.buffers, {Scalar::of(std::int64_t{42}), Scalar::of(std::int64_t{3})});
  for (int e = 0; e < 512; ++e) ASSERT_EQ(r.f32(1)[e], kept(e, 3, 42) ? relu(r.f32(0)[e]) * 2 : 0.0f) << e;
}

TEST(InterpretWorked, DropoutGradient) {
  Case r = prepare("j_relu_dropout_grad_cuda.kir");
  run_in_all_orders(r.kernel, r.buffers, {Scalar::of(std::int64_t{42}), Scalar::of(std::int64_t{3})});
  for (int e = 0; e < 512; ++e) ASSERT_EQ(r.f32(2)[e], r.f32(1)[e] > 0 && kept(e, 3, 42) ? r.f32(0)[e] * 2 : 0.0f) << e;
}

TEST(InterpretWorked, ConcatInPlace) {
  Case a = prepare("k_put_a.kir"), b = prepare("k_put_b.kir");
  const Bytes before = a.buffers[1];
  run_in_all_orders(a.kernel, a.buffers);
  b.buffers[1] = a.buffers[1];
  run_in_all_orders(b.kernel, b.buffers);
  for (int p = 0; p < 24; ++p)
    for (int c = 0; c < 96; ++c) {
      ASSERT_EQ(b.f32(1)[p * 96 + c], c < 64 ? a.f32(0)[p * 64 + c] : relu(b.f32(0)[p * 32 + c - 64]));
      if (c >= 64) {
        ASSERT_EQ(a.f32(1)[p * 96 + c], before.as<float>()[p * 96 + c]);
      }
    }
}

TEST(InterpretWorked, ConvolutionOfPairs) {
  for (const char* file : {"l_conv1x1_widen.kir", "l_conv1x1_dot.kir"}) {
    Case r = prepare(file);
    run_in_all_orders(r.kernel, r.buffers);
    const auto* x = r.buffers[0].as<std::uint16_t>();
    const auto* w = r.buffers[1].as<std::uint16_t>();
    for (int p = 0; p < 24; ++p)
      for (int k = 0; k < 32; ++k) {
        double sum = 0;
        for (int c = 0; c < 16; ++c)
          sum += ir::bf16_to_f32(x[p * 16 + c]) * double(ir::bf16_to_f32(w[(c / 2 * 32 + k) * 2 + c % 2]));
        ASSERT_NEAR(r.f32(2)[p * 32 + k], sum, 1e-5) << file;
      }
  }
}

}  // namespace
}  // namespace fusejit::testing
