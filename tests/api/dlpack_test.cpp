// DLPack both ways: what is imported shows the memory itself or a copy, the deleter is called once whatever happens,
// and what is exported lives as long as it is held.
#include "fusejit/dlpack.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <thread>

#include "fusejit/fusejit.h"
#include "tests/support/error_of.h"

namespace fusejit {
namespace {

using testing::error_of;
using Floats = std::vector<float>;
using Numbers = std::vector<std::int64_t>;

// What another library would hand over: memory of a test, in either form.
class Producer {
 public:
  Floats memory = Floats(24);
  Numbers shape, strides;
  int deleted = 0;
  DLTensor tensor{};

  explicit Producer(Numbers shape_of, Numbers strides_of = {})
      : shape(std::move(shape_of)), strides(std::move(strides_of)) {
    std::iota(memory.begin(), memory.end(), 0.0f);
    tensor = {memory.data(),
              {kDLCPU, 0},
              static_cast<std::int32_t>(shape.size()),
              {kDLFloat, 32, 1},
              shape.data(),
              strides.empty() ? nullptr : strides.data(),
              0};
  }
  DLManagedTensor* old_form() {
    old_ = {tensor, this, [](DLManagedTensor* self) { ++static_cast<Producer*>(self->manager_ctx)->deleted; }};
    return &old_;
  }
  DLManagedTensorVersioned* new_form(std::uint32_t major = 1) {
    new_ = {{major, 7},
            this,
            [](DLManagedTensorVersioned* self) { ++static_cast<Producer*>(self->manager_ctx)->deleted; },
            0,
            tensor};
    return &new_;
  }

 private:
  DLManagedTensor old_{};
  DLManagedTensorVersioned new_{};
};

// Where the value is, as it says itself.
const void* address_of(const Tensor& tensor) {
  DLManagedTensor* out = to_dlpack(tensor);
  const void* address = out->dl_tensor.data;
  out->deleter(out);
  return address;
}

class Dlpack : public ::testing::Test {
 protected:
  void SetUp() override { set_options({.engine = "graph_interpreter"}); }
  void TearDown() override {
    check_borrowed(false);
    set_options({});
  }
};

TEST_F(Dlpack, ImportsTheMemoryItself) {
  for (const bool versioned : {false, true}) {
    Producer from({2, 3});
    from.tensor.byte_offset = 8;
    {
      Tensor kept;
      {
        const Tensor x = versioned ? from_dlpack(from.new_form()) : from_dlpack(from.old_form());
        EXPECT_EQ(x.type(), (Type{f32, {2, 3}}));
        EXPECT_EQ(x.span<float>().data(), from.memory.data() + 2);
        kept = x * 1;
      }
      EXPECT_EQ(from.deleted, 0) << "what is recorded needs it";
      EXPECT_EQ(kept.to_vector<float>(), (Floats{2, 3, 4, 5, 6, 7}));
    }
    EXPECT_EQ(from.deleted, 1);
  }
}

TEST_F(Dlpack, StridesBecomeViewsOrCopies) {
  const struct {
    const char* name;
    Numbers shape, strides;
    std::uint64_t first;
    bool is_copied;
    Floats values;
  } cases[] = {
      {"column-major", {2, 3}, {1, 2}, 0, false, {0, 2, 4, 1, 3, 5}},
      {"channels last", {1, 2, 1, 3}, {6, 1, 6, 2}, 0, false, {0, 2, 4, 1, 3, 5}},
      {"repeated rows", {2, 3}, {0, 1}, 1, false, {1, 2, 3, 1, 2, 3}},
      {"a pitch", {2, 3}, {4, 1}, 0, true, {0, 1, 2, 4, 5, 6}},
      {"backwards", {4}, {-2}, 8, true, {8, 6, 4, 2}},
      {"a scalar", {}, {}, 3, false, {3}},
      {"nothing", {0, 3}, {3, 1}, 0, true, {}},
  };
  check_borrowed(true);
  for (const auto& c : cases) {
    Producer from(c.shape, c.strides);
    from.tensor.byte_offset = 4 * c.first;
    {
      const Tensor x = from_dlpack(from.new_form());
      EXPECT_EQ(from.deleted, c.is_copied ? 1 : 0) << c.name;
      EXPECT_EQ((x * 1).to_vector<float>(), c.values) << c.name;
      if (!c.is_copied) {
        from.memory[c.first] = 77;
        EXPECT_THROW((x * 2).eval(), UserError) << c.name << ": it is the producer's memory";
        from.memory[c.first] = static_cast<float>(c.first);
      }
    }
    EXPECT_EQ(from.deleted, 1) << c.name;
  }
}

TEST_F(Dlpack, MemoryThatIsNotAlignedIsCopied) {
  Producer from({3});
  std::vector<char> bytes(16);
  std::memcpy(bytes.data() + 1, from.memory.data() + 1, 12);
  from.tensor.data = bytes.data();
  from.tensor.byte_offset = 1;
  const Tensor x = from_dlpack(from.old_form());
  EXPECT_EQ(from.deleted, 1);
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 2, 3}));
}

TEST_F(Dlpack, ADeleterMayBeMissing) {
  Producer from({3});
  DLManagedTensor* managed = from.old_form();
  managed->deleter = nullptr;
  EXPECT_EQ(from_dlpack(managed).to_vector<float>(), (Floats{0, 1, 2}));
  EXPECT_EQ(from.deleted, 0);
}

TEST_F(Dlpack, RefusesInOneSentenceAndGivesBack) {
  const struct {
    std::function<void(Producer&)> spoil;
    std::string sentence;
  } cases[] = {
      {[](auto& p) {
         p.tensor.dtype = {kDLUInt, 16, 1};
       },
       "from_dlpack: uint16 is no dtype of tensors (which are bool, int8, uint8, int16, int32, int64, float16, "
       "bfloat16, float32, float64)"},
      {[](auto& p) {
         p.tensor.dtype = {kDLFloat, 32, 4};
       },
       "from_dlpack: float32 in 4 lanes is no dtype"},
      {[](auto& p) {
         p.tensor.dtype = {200, 8, 1};
       },
       "from_dlpack: type 200, 8 is no dtype"},
      {[](auto& p) { p.tensor.device.device_type = kDLMetal; },
       "from_dlpack: the memory is of DLPack's device type 8; only that of the host (1, 3) and of CUDA devices (2) "
       "can"},
      {[](auto& p) {
         p.tensor.device = {kDLCUDA, -1};
       },
       "from_dlpack: there is no CUDA device -1"},
      {[](auto& p) { p.tensor.ndim = -1; }, "from_dlpack: the rank is -1, it must be 0 to 8"},
      {[](auto& p) { p.tensor.ndim = 9; }, "from_dlpack: the rank is 9, it must be 0 to 8"},
      {[](auto& p) { p.tensor.shape = nullptr; }, "from_dlpack: there is no shape, for rank 2"},
      {[](auto& p) { p.shape[0] = -2; }, "-2"},
      {[](auto& p) { p.shape[0] = std::int64_t{1} << 50; }, "1125899906842624"},
      {[](auto& p) { p.tensor.data = nullptr; }, "from_dlpack: the memory is null (x: f32[2,3])"},
      {[](auto& p) { p.tensor.byte_offset = ~std::uint64_t{0}; },
       "from_dlpack: the byte_offset 18446744073709551615 leads beyond every address (x: f32[2,3])"},
      {[](auto& p) { p.strides[0] = std::int64_t{1} << 62; }, "from_dlpack: elements lie beyond every address"},
  };
  for (const auto& c : cases) {
    for (const bool versioned : {false, true}) {
      Producer from({2, 3}, {3, 1});
      c.spoil(from);
      const std::string error =
          error_of([&] { versioned ? from_dlpack(from.new_form()) : from_dlpack(from.old_form()); });
      EXPECT_NE(error.find(c.sentence), std::string::npos) << error << "\nshould say: " << c.sentence;
      EXPECT_EQ(from.deleted, 1) << c.sentence;
    }
  }
  Producer later({2, 3});
  later.tensor.ndim = 1000;  // another major version may mean anything by it
  EXPECT_EQ(error_of([&] { from_dlpack(later.new_form(2)); }),
            "from_dlpack: the tensor is of version 2.7 of DLPack, only those of version 1 can be read");
  EXPECT_EQ(later.deleted, 1);
  EXPECT_THROW(from_dlpack(static_cast<DLManagedTensor*>(nullptr)), UserError);
  EXPECT_THROW(from_dlpack(static_cast<DLManagedTensorVersioned*>(nullptr)), UserError);
}

TEST_F(Dlpack, ExportsTheMemoryAndKeepsIt) {
  const std::int64_t before = memory::allocated();
  DLManagedTensorVersioned* out = nullptr;
  const void* where = nullptr;
  {
    const Tensor x = from_host(Floats{1, 2, 3, 4, 5, 6}, {2, 3}) * 2;
    out = to_dlpack_versioned(x);
    where = x.span<float>().data();
  }
  EXPECT_EQ(out->version.major, 1u);
  EXPECT_EQ(out->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  const DLTensor& t = out->dl_tensor;
  EXPECT_EQ(t.data, where);
  EXPECT_EQ(t.device.device_type, kDLCPU);
  EXPECT_EQ(t.byte_offset, 0u);
  ASSERT_EQ(t.ndim, 2);
  EXPECT_EQ(Numbers(t.shape, t.shape + 2), (Numbers{2, 3}));
  EXPECT_EQ(Numbers(t.strides, t.strides + 2), (Numbers{3, 1}));
  EXPECT_EQ(static_cast<const float*>(t.data)[5], 12) << "the tensor is gone, its memory is not";
  EXPECT_GT(memory::allocated(), before);
  std::thread([&] { out->deleter(out); }).join();
  EXPECT_EQ(memory::allocated(), before);
  EXPECT_THROW(to_dlpack(Tensor()), UserError);
}

TEST_F(Dlpack, EveryDtypeGoesThereAndBack) {
  const struct {
    DType dtype;
    DLDataType type;
  } cases[] = {{boolean, {kDLBool, 8, 1}}, {i8, {kDLInt, 8, 1}},       {u8, {kDLUInt, 8, 1}},
               {i16, {kDLInt, 16, 1}},     {i32, {kDLInt, 32, 1}},     {i64, {kDLInt, 64, 1}},
               {f16, {kDLFloat, 16, 1}},   {bf16, {kDLBfloat, 16, 1}}, {f32, {kDLFloat, 32, 1}},
               {f64, {kDLFloat, 64, 1}}};
  const std::int64_t before = memory::allocated();
  for (const auto& c : cases) {
    const Tensor x = from_host(Floats{0, 1, -2.5f, 3}, {2, 2}).to(c.dtype);
    DLManagedTensor* out = to_dlpack(x);
    EXPECT_EQ(out->dl_tensor.dtype.code, c.type.code) << name(c.dtype);
    EXPECT_EQ(out->dl_tensor.dtype.bits, c.type.bits) << name(c.dtype);
    EXPECT_EQ(out->dl_tensor.dtype.lanes, 1) << name(c.dtype);
    const Tensor back = from_dlpack(out);
    EXPECT_EQ(back.dtype(), c.dtype);
    EXPECT_EQ(address_of(back), address_of(x)) << name(c.dtype);
    EXPECT_EQ(back.to_vector<double>(), x.to_vector<double>()) << name(c.dtype);
    EXPECT_EQ(from_dlpack(to_dlpack(zeros({0, 5}, c.dtype))).shape(), (Shape{0, 5}));
    EXPECT_EQ(from_dlpack(to_dlpack_versioned(scalar(1, c.dtype))).item<double>(), 1);
  }
  EXPECT_EQ(memory::allocated(), before);
}

// A step may overwrite a parameter in place, but not what somebody was given.
TEST_F(Dlpack, TrainingLeavesExportedMemoryAlone) {
  set_options({});
  nn::Linear net(3, 2);
  optim::SGD opt(net.parameters(), {.lr = 0.1});
  auto step = train_step(net, opt, [&](const Tensor& x) { return mean(square(net(x))); });
  DLManagedTensor* out = to_dlpack(net.parameters()[0].value());
  const auto* weight = static_cast<const float*>(out->dl_tensor.data);
  const Floats before(weight, weight + 6);
  for (int i = 0; i < 3; ++i) step(ones({4, 3}));
  EXPECT_NE(net.parameters()[0].value().to_vector<float>(), before);
  EXPECT_EQ(Floats(weight, weight + 6), before);
  out->deleter(out);
}

}  // namespace
}  // namespace fusejit
