// Host memory with strides as tensors, borrowed and copied, and tensors as host memory.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <numeric>

#include "fusejit/fusejit.h"
#include "tests/support/error_of.h"

namespace fusejit {
namespace {

using testing::error_of;
using Floats = std::vector<float>;
using Strides = std::vector<std::int64_t>;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

class Host : public ::testing::Test {
 protected:
  void SetUp() override {
    set_options({.engine = "graph_interpreter"});
    std::iota(numbers.begin(), numbers.end(), 0.0f);
  }
  void TearDown() override {
    check_borrowed(false);
    set_options({});
  }
  Floats numbers = Floats(24);
};

// The element of each index, found the slow way.
Floats walked(const float* first, const Shape& shape, const Strides& strides) {
  Floats values;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    std::int64_t rest = i, offset = 0;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      offset += rest % shape[axis] * strides[static_cast<std::size_t>(axis)];
      rest /= shape[axis];
    }
    values.push_back(first[offset]);
  }
  return values;
}

struct HostLayout {
  const char* name;
  std::int64_t first;
  Shape shape;
  Strides strides;
  bool is_borrowed;  // else copied
};
const HostLayout kLayouts[] = {
    {"row-major", 0, {2, 3}, {3, 1}, true},
    {"column-major", 0, {2, 3}, {1, 2}, true},
    {"row pitch", 0, {3, 2}, {4, 1}, false},
    {"column pitch", 1, {2, 3}, {1, 4}, false},
    {"channels last", 0, {2, 3, 2, 2}, {12, 1, 6, 3}, true},
    {"axes of one have any stride", 0, {1, 3, 1}, {100, 1, -7}, true},
    {"one repeated", 5, {4}, {0}, true},
    {"rows repeated", 0, {4, 3}, {0, 1}, true},
    {"columns repeated, transposed", 2, {3, 2, 2}, {1, 0, 3}, true},
    {"backwards", 5, {6}, {-1}, false},
    {"upside down", 3, {2, 3}, {-3, 1}, false},
    {"every other", 0, {5}, {2}, false},
    {"overlapping", 0, {4, 3}, {1, 1}, false},
    {"a scalar", 7, {}, {}, true},
    {"nothing", 0, {2, 0, 3}, {5, 5, 5}, true},
};

TEST_F(Host, CopiesAnyStrides) {
  for (const HostLayout& l : kLayouts) {
    const float* first = numbers.data() + l.first;
    const Tensor x = from_host(first, l.shape, f32, l.strides);
    EXPECT_TRUE(x.evaluated()) << l.name;
    EXPECT_EQ(x.to_vector<float>(), walked(first, l.shape, l.strides)) << l.name;
  }
  for (const DType dtype : {boolean, u8, bf16, i16, i32, f64}) {  // elements of one, two, four and eight bytes
    const Tensor wide = arange(6, i64).to(dtype).reshape({2, 3});
    std::vector<char> bytes(static_cast<std::size_t>(wide.bytes()));
    wide.copy_to(bytes.data());
    EXPECT_EQ(from_host(bytes.data(), {3, 2}, dtype, {1, 3}).to_vector<double>(),
              permute(wide, {1, 0}).to_vector<double>())
        << name(dtype);
  }
}

TEST_F(Host, BorrowsWhatFillsItsMemory) {
  check_borrowed(true);
  for (const HostLayout& l : kLayouts) {
    float* first = numbers.data() + l.first;
    int returned = 0;
    const auto make = [&] { return borrow(first, l.shape, l.strides, [&] { ++returned; }); };
    if (!l.is_borrowed) {
      EXPECT_NE(error_of(make).find("do not fill their memory in a row; from_host copies them (x: f32["),
                std::string::npos)
          << l.name;
      EXPECT_EQ(returned, 0) << l.name;
      continue;
    }
    {
      const Tensor x = make();
      EXPECT_EQ((x * 1).to_vector<float>(), walked(first, l.shape, l.strides)) << l.name;
      EXPECT_EQ(returned, 0) << l.name;
      if (l.shape.elements() > 1) {  // the owner's change shows: it is the owner's memory
        const float before = std::exchange(*first, 99.0f);
        EXPECT_THROW((x * 2).eval(), UserError) << l.name;
        *first = before;
      }
    }
    EXPECT_EQ(returned, 1) << l.name;
  }
}

// What is row-major needs no op, whatever the strides of axes of one are.
TEST_F(Host, BorrowsRowMajorMemoryAsALeaf) {
  for (const Shape& shape : {Shape{4, 6}, Shape{24, 1}, Shape{1, 4, 1, 6, 1}, Shape{1}, Shape{}, Shape{0, 3}}) {
    const Tensor x = borrow(numbers.data(), shape);
    EXPECT_TRUE(x.evaluated()) << shape.str();
    EXPECT_EQ(x.span<float>().size(), static_cast<std::size_t>(shape.elements()));
  }
  const Tensor x = borrow(numbers.data(), {24, 1, 1}, {1, 7, 0});
  EXPECT_TRUE(x.evaluated());
  EXPECT_EQ(x.span<float>().data(), numbers.data());
  EXPECT_FALSE(borrow(numbers.data(), {4, 6}, {1, 4}).evaluated());
}

TEST_F(Host, RefusesWhatCannotBeMeant) {
  const float* first = numbers.data();
  const struct {
    std::function<void()> call;
    std::string sentence;
  } cases[] = {
      {[&] {
         from_host(first, {2, 3}, f32, {1});
       },
       "from_host: there are 1 strides [1] for rank 2 (x: f32[2,3])"},
      {[&] { from_host(nullptr, {2}, f32, {1}); }, "from_host: the memory is null (x: f32[2] with strides [1])"},
      {[&] { from_host(first, {2}, DType::u32, {1}); }, "from_host: u32 is no dtype of tensors"},
      {[&] {
         from_host(first, {2, 3}, f32, {kMost, 1});
       },
       "from_host: elements lie beyond every address (x: f32[2,3] with strides [9223372036854775807,1])"},
      {[&] { from_host(first, {3}, f32, {kMost}); }, "beyond every address"},
      {[&] { from_host(first, {2}, f32, {kMost / 4}); }, "beyond every address"},
      {[&] { from_host(first, {2}, f32, {-kMost - 1}); }, "beyond every address"},
      {[&] {
         from_host(first, {2, 2}, f32, {kMost, kMost});
       },
       "beyond every address"},
      {[&] { from_host(first, {2}, f32, {-(std::int64_t{1} << 60)}); }, "beyond every address"},
      {[&] { borrow(numbers.data(), {2}, {kMost}); }, "borrow: elements lie beyond every address"},
      {[&] { borrow(reinterpret_cast<char*>(numbers.data()) + 1, {2}, f32); },
       "borrow: the memory is not aligned to the 4 bytes of an element; from_host copies it (x: f32[2] with"},
      {[&] {
         from_host(numbers, {5, 5}, {5, 1});
       },
       "from_host: elements 0 to 24 are meant, 24 values given (x: f32[5,5] with strides [5,1])"},
      {[&] {
         from_host(numbers, {2, 2}, {-1, 1});
       },
       "from_host: elements -1 to 1 are meant, 24 values given"},
      {[&] { from_host(Floats(), {1}, {1}); }, "elements 0 to 0 are meant, 0 values given"},
  };
  for (const auto& c : cases) {
    const std::string error = error_of(c.call);
    EXPECT_NE(error.find(c.sentence), std::string::npos) << error << "\nshould say: " << c.sentence;
  }
  EXPECT_EQ(from_host(numbers, {4, 6}, {6, 1}).elements(), 24);
  EXPECT_EQ(from_host(Floats(), {0, 3}, {7, 7}).elements(), 0);
}

TEST_F(Host, SpansShowTheMemoryItself) {
  const Tensor x = from_host(numbers, {4, 6}), y = x + 1;
  const std::span<const float> span = y.span<float>();
  ASSERT_EQ(span.size(), 24u);
  EXPECT_EQ(Floats(span.begin(), span.end()), y.to_vector<float>());
  EXPECT_TRUE(y.evaluated());
  EXPECT_EQ(y.span<float>().data(), span.data()) << "no copy";
  const Tensor half = from_host(Floats{1, -2}, {2}).to(bf16), number = scalar(2.5), truth = x.sum() > 0;
  EXPECT_EQ(half.span<std::uint16_t>()[1], 0xc000);
  EXPECT_EQ(number.span<float>()[0], 2.5f);
  EXPECT_TRUE(truth.span<bool>()[0]);
  EXPECT_EQ(error_of([&] { y.span<double>(); }), "span: the elements are no f64 (x: f32[4,6])");
  EXPECT_EQ(error_of([&] { y.span<std::uint16_t>(); }), "span: the elements are no f16 (x: f32[4,6])");
  const Tensor empty;
  EXPECT_THROW(empty.span<float>(), UserError);
}

TEST_F(Host, ViewsHoldWhatTheyShow) {
  HostView<float> view = host_view<float>(from_host(numbers, {2, 3, 4}) * 2);
  EXPECT_EQ(view.shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(Strides(view.strides().begin(), view.strides().end()), (Strides{12, 4, 1}));
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 4; ++k)
        EXPECT_EQ(view(i, j, k), 2 * numbers[static_cast<std::size_t>(12 * i + 4 * j) + k]);
  EXPECT_EQ(view.data()[23], 46);
  EXPECT_EQ(error_of([&] { view(0, 3, 0); }), "host_view: there is no element [0,3,0] (shape [2,3,4])");
  EXPECT_EQ(error_of([&] { view(0, -1, 0); }), "host_view: there is no element [0,-1,0] (shape [2,3,4])");
  EXPECT_EQ(error_of([&] { view(0, 0); }), "host_view: there is no element [0,0] (shape [2,3,4])");
  EXPECT_EQ(host_view<float>(scalar(4))(), 4);
  EXPECT_EQ(error_of([&] { host_view<double>(scalar(4)); }), "host_view: the elements are no f64 (x: f32[])");
  const HostView<std::int64_t> none = host_view<std::int64_t>(zeros({0, 3}, i64));
  EXPECT_THROW(none(0, 0), UserError);
}

// A step may overwrite a parameter in place, but not what a view holds.
TEST_F(Host, TrainingLeavesTheMemoryOfViewsAndHandlesAlone) {
  set_options({});
  nn::Linear net(3, 2);
  optim::SGD opt(net.parameters(), {.lr = 0.1});
  const Tensor x = ones({4, 3});
  auto step = train_step(net, opt, [&](const Tensor& given) { return mean(square(net(given))); });
  const Tensor before = net.parameters()[0].value();
  const Floats values = before.to_vector<float>();
  const std::span<const float> span = before.span<float>();
  const HostView<float> view = host_view<float>(net.parameters()[1].value());
  const Floats bias(view.data(), view.data() + 2);
  for (int i = 0; i < 3; ++i) step(x);
  EXPECT_NE(net.parameters()[0].value().to_vector<float>(), values);
  EXPECT_EQ(Floats(span.begin(), span.end()), values);
  EXPECT_NE(net.parameters()[1].value().to_vector<float>(), bias);
  EXPECT_EQ(Floats(view.data(), view.data() + 2), bias);
}

}  // namespace
}  // namespace fusejit
