// Tensors of bytes and of 16-bit integers in the C++ API: what comes in and goes out, promotion, and numbers beside
// them. Values are PyTorch's (2.15); docs/ops.md says where they differ.
#include <limits>

#include "fusejit/host.h"
#include "tests/api/engines.h"
#include "tests/support/error_of.h"

namespace fusejit {
namespace {

using testing::error_of;
using Ints = std::vector<int>;

class NarrowIntegers : public testing::OnEveryEngine {
 protected:
  const Tensor u = tensor<std::uint8_t>({1, 44, 200}), s = tensor<std::int8_t>({-128, -1, 127}),
               w = tensor<std::int16_t>({-32768, 300, 32767});
};

void expect(const Tensor& x, DType dtype, const Ints& values) {
  EXPECT_EQ(x.dtype(), dtype) << x.type().str();
  EXPECT_EQ(x.to_vector<int>(), values);
}

TEST_P(NarrowIntegers, NumbersWrapToTheTensor) {
  expect(u + 300, u8, {45, 88, 244});
  expect(u - 1, u8, {0, 43, 199});
  expect(u * -1, u8, {255, 212, 56});
  expect(-1 * u, u8, {255, 212, 56});
  expect(3 - u, u8, {2, 215, 59});
  expect(u == 300, boolean, {0, 1, 0});
  expect(u < -1, boolean, {1, 1, 1});
  expect(u > -1, boolean, {0, 0, 0});
  expect(floor_divide(u, -1), u8, {0, 0, 0});
  expect(s + 200, i8, {72, -57, 71});
  expect(w * 2, i16, {0, 600, -2});
  expect(u + 1.5 > 2, boolean, {1, 1, 1});
  EXPECT_EQ((u + 1.5).to_vector<float>(), (std::vector<float>{2.5f, 45.5f, 201.5f}));
}

TEST_P(NarrowIntegers, PromoteAsPyTorchDoes) {
  expect(u + s, i16, {-127, 43, 327});
  expect(u * w, i16, {-32768, 13200, -200});
  expect(maximum(u, s), i16, {1, 44, 200});
  expect(u + tensor<int>({-1, 1000, 0}), i32, {0, 1044, 200});
  expect(u + tensor<std::int64_t>({-1, 1000, 0}), i64, {0, 1044, 200});
  expect(u + (u > 1), u8, {1, 45, 201});
  expect(stack({u, s}), i16, {1, 44, 200, -128, -1, 127});
  expect(where(u > 1, u, s), i16, {-128, 44, 200});
  EXPECT_EQ((u / 2).to_vector<float>(), (std::vector<float>{0.5f, 22, 100}));
  EXPECT_EQ(sqrt(u).dtype(), f32);
  EXPECT_EQ((u.to(f16) + u).dtype(), f16);
  EXPECT_EQ((u + ones({3}, bf16)).dtype(), bf16);
}

TEST_P(NarrowIntegers, ReduceAndCount) {
  expect(u.sum(), i64, {245});
  expect(prod(u), i64, {8800});
  expect(amax(u), u8, {200});
  expect(amin(w), i16, {-32768});
  expect(argmax(u, 0), i64, {2});
  expect(cumsum(u, 0), i64, {1, 45, 245});
  expect(~u, u8, {254, 211, 55});
  expect(-u, u8, {255, 212, 56});
  expect(-s, i8, {-128, 1, -127});
  expect(abs(s), i8, {-128, 1, 127});
  expect(square(u), u8, {1, 144, 64});
  expect(pow(u, 2), u8, {1, 144, 64});
  expect(clamp(u, 3, 100), u8, {3, 44, 100});
  expect(clamp(u, -1, 300), u8, {1, 44, 200});
  expect(clamp(s, -300, 5), i8, {-128, -1, 5});
  expect(sort(u, 0, true).values, u8, {200, 44, 1});
  expect(arange(300, u8).reshape({2, 150}).sum({1}), i64, {11175, 22411});
  expect(u.to(i8), i8, {1, 44, -56});
  expect((u.to(f32) - 100).to(u8), u8, {0, 0, 100});
  expect(index_select(u, 0, tensor<std::uint8_t>({2, 0})), u8, {200, 1});
  expect(take(u, tensor<std::int8_t>({-1, 0})), u8, {200, 1});
  expect(one_hot(tensor<std::uint8_t>({1, 0}), 2, u8), u8, {0, 1, 1, 0});
}

TEST_P(NarrowIntegers, AreReadInPlace) {
  std::vector<std::uint8_t> bytes = {0, 127, 128, 255};
  EXPECT_EQ(from_host(bytes, {2, 2}).type(), (Type{u8, {2, 2}}));
  const Tensor borrowed = borrow(bytes.data(), {4});
  expect(borrowed, u8, {0, 127, 128, 255});
  const Tensor more = borrowed + 1;
  EXPECT_EQ(std::vector<std::uint8_t>(more.span<std::uint8_t>().begin(), more.span<std::uint8_t>().end()),
            (std::vector<std::uint8_t>{1, 128, 129, 0}));
  EXPECT_EQ(host_view<std::int16_t>(w)(1), 300);
  EXPECT_EQ(sum(s.to(i32)).to(i8).item<std::int8_t>(), -2);
  EXPECT_EQ(u.to_vector<double>(), (std::vector<double>{1, 44, 200}));
  EXPECT_EQ(u.str(), "[1, 44, 200] : u8[3]");
  EXPECT_EQ(s.str(), "[-128, -1, 127] : i8[3]");
  EXPECT_NE(error_of([&] { u.span<std::int8_t>(); }).find("the elements are no i8 (x: u8[3])"), std::string::npos);
}

TEST_P(NarrowIntegers, AreTargets) {
  const Tensor x = (arange(3 * 300, f32).reshape({3, 300}) / 100).detach().requires_grad();
  const Tensor bytes = tensor<std::uint8_t>({0, 255, 44});
  const Tensor narrow = cross_entropy(x, bytes), wide = cross_entropy(x, bytes.to(i64));
  EXPECT_EQ(narrow.item<float>(), wide.item<float>());
  EXPECT_EQ(grad(narrow, {x})[0].to_vector<float>(), grad(wide, {x})[0].to_vector<float>());
}

TEST_P(NarrowIntegers, WhatDoesNotFitIsOneSentence) {
  EXPECT_EQ(error_of([] { full({2}, 300, u8); }), "full: u8 cannot hold the value");
  EXPECT_EQ(error_of([] { full({2}, -1, u8); }), "full: u8 cannot hold the value");
  EXPECT_EQ(error_of([&] { mean(u); }), "mean: x must be float, it is u8 (x: u8[3])");
  EXPECT_EQ(error_of([&] { where(u > 1, u, 300); }),
            "where: 300 is out of range for u8 (c: bool[3], a: u8[3], b: 300)");
  EXPECT_EQ(error_of([] { arange(0, 300, 1, u8); }), "arange: u8 cannot hold the numbers (start 0, stop 300, step 1)");
  EXPECT_EQ(error_of([] { randint(0, 257, {2}, u8); }), "randint: u8 cannot hold the numbers 0 to 256");
  EXPECT_EQ(error_of([&] { grad(u.sum(), {u}); }), "grad: the loss must be one float number (loss: i64[])");
}

INSTANTIATE_TEST_SUITE_P(Engines, NarrowIntegers, ::testing::ValuesIn(testing::kEveryEngine), testing::name_of);

}  // namespace
}  // namespace fusejit
