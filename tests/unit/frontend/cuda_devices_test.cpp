// Tensors, modules and files on a CUDA device, on the driver without a device.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <sstream>
#include <thread>

#include "frontend/context.h"
#include "frontend/evaluation/engine.h"
#include "fusejit/dlpack.h"
#include "fusejit/fusejit.h"
#include "tests/support/error_of.h"
#include "tests/support/fake_device/fake_gpu.h"

namespace fusejit {
namespace {

using test::FakeGpu;
using testing::error_of;
using Strings = std::vector<std::string>;

class CudaDevices : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef FUSEJIT_X86
    GTEST_SKIP() << "this build runs nothing on the processor";
#endif
    manual_seed(5);
    gpu.emplace();
    gpu->use({.threads = 1});
  }
  void TearDown() override {
    if (!gpu) return;
    context().default_ordinal = -1;
    gpu->backend.reset();
    FakeGpu::leave();
    EXPECT_EQ(gpu->driver.problems(), Strings());
    EXPECT_EQ(gpu->driver.leaks(), Strings());
    gpu.reset();
  }

  std::optional<FakeGpu> gpu;
  const Device cuda{"cuda:0"};
};

TEST_F(CudaDevices, ValuesGoThereAndComeBackInEveryWay) {
  const Tensor here = from_host(std::vector<float>{1, 2, 3, 4}, {2, 2}), x = here.to("cuda:0");
  EXPECT_EQ(x.device(), cuda);
  EXPECT_EQ(x.to(cuda).state(), x.state());
  EXPECT_EQ(here.to("cpu").state(), here.state());
  const Tensor y = x * 2 + 1;
  EXPECT_EQ(y.device(), cuda);
  EXPECT_FALSE(y.evaluated());
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{3, 5, 7, 9}));
  EXPECT_EQ(y.to_vector<double>(), (std::vector<double>{3, 5, 7, 9}));
  float bytes[4] = {};
  y.copy_to(bytes);
  EXPECT_EQ(bytes[3], 9);
  EXPECT_EQ(sum(y).item<float>(), 24);
  EXPECT_EQ(y.to("cpu").device(), Device());
  EXPECT_EQ((y.to("cpu") - here).to_vector<float>(), (std::vector<float>{2, 3, 4, 5}));
  std::ostringstream text;
  text << y;
  EXPECT_EQ(text.str(), "[[3, 5],\n [7, 9]] : f32[2,2] on cuda:0");
  EXPECT_EQ(from_host(std::vector<float>{}, {0, 3}).to(cuda).to_vector<float>().size(), 0u);
  eval({here + 1, x + 1, scalar(2) * 3});  // a plan for each device
}

TEST_F(CudaDevices, DevicesDoNotMixButNumbersGoAlong) {
  const Tensor here = ones({2, 3}), there = ones({2, 3}).to(cuda);
  EXPECT_EQ(error_of([&] { here + there; }),
            "add: all tensors must be on one device (f32[2,3] on cpu, f32[2,3] on cuda:0); .to(\"cuda:0\") moves one");
  EXPECT_NE(error_of([&] {
              concat({there, there, here});
            }).find("concat: all tensors must be on one device"),
            std::string::npos);
  EXPECT_NE(error_of([&] { matmul(there, ones({3, 2})); }).find("f32[3,2] on cpu"), std::string::npos);
  EXPECT_EQ(((there * scalar(3) + 0.25) / 2).to_vector<float>()[0], 1.625f);
  const Tensor zero_d = from_host(std::vector<float>{4}, {});
  EXPECT_EQ((there * zero_d).device(), cuda);
  EXPECT_EQ((zero_d * there).device(), cuda);
  EXPECT_EQ((zero_d * there * zero_d).to_vector<float>()[5], 16);
  EXPECT_EQ((zero_d * scalar(2)).device(), Device());
  EXPECT_EQ((scalar(2) * scalar(2)).to(cuda).device(), cuda);
  EXPECT_EQ((scalar(2) + scalar(2)).item<float>(), 4);
  EXPECT_NE(error_of([&] { here.to("gpu"); }).find("device 'gpu'"), std::string::npos);
}

TEST_F(CudaDevices, GradientsFlowThroughCopies) {
  const Tensor w = from_host(std::vector<float>{1, 2, 3}, {3}).requires_grad();
  const Tensor loss = sum(square(w.to(cuda) * 2)).to("cpu");
  EXPECT_EQ(loss.device(), Device());
  const Tensor g = grad(loss, {w})[0];
  EXPECT_EQ(g.device(), Device());
  EXPECT_EQ(g.to_vector<float>(), (std::vector<float>{8, 16, 24}));
  Tensor there = ones({3}).to(cuda).requires_grad();
  const Tensor g_there = grad(sum(there * there), {there})[0];
  EXPECT_EQ(g_there.device(), cuda);
  EXPECT_EQ(g_there.to_vector<float>()[0], 2);
  const auto twice = custom_gradient(
      [](auto& in) {
        return Saved{in[0] * 2, {in[0]}};
      },
      [](auto& saved, auto& d) { return std::vector{saved[0] * 0 + d * 3}; });
  EXPECT_EQ(grad(sum(twice({there})), {there})[0].to_vector<float>()[0], 3);
}

TEST_F(CudaDevices, TheDefaultDeviceIsWhereTensorsAreMade) {
  context().default_ordinal = 0;  // as set_options({.device = "cuda:0"}) does where the machine has one
  EXPECT_EQ(ones({3}).device(), cuda);
  EXPECT_EQ(rand({3}).device(), cuda);
  EXPECT_EQ(arange(3).device(), cuda);
  EXPECT_EQ(tensor<float>({1, 2}).device(), cuda);
  nn::Linear net(3, 2);
  EXPECT_EQ(net(ones({4, 3})).device(), cuda);
  EXPECT_EQ(net(ones({4, 3})).to_vector<float>().size(), 8u);
  float memory[2] = {1, 2};
  EXPECT_EQ(borrow(memory, {2}).device(), Device());
}

// Memory of the device goes both ways as it is; what is imported is given back when no work needs it.
TEST_F(CudaDevices, DlpackSharesMemoryOfTheDevice) {
  static int deleted;
  deleted = 0;
  const auto imported = [](DLManagedTensor* theirs, std::uint64_t offset, std::vector<std::int64_t> strides = {3, 1}) {
    struct Other {
      DLManagedTensor managed;
      DLManagedTensor* theirs;
      std::int64_t shape[2], strides[2];
    };
    auto* other = new Other{{theirs->dl_tensor, nullptr, nullptr}, theirs, {2, 3}, {strides[0], strides[1]}};
    DLTensor& t = other->managed.dl_tensor;
    t.ndim = 2, t.shape = other->shape, t.strides = other->strides, t.byte_offset = offset;
    other->managed.manager_ctx = other;
    other->managed.deleter = [](DLManagedTensor* self) {
      auto* one = static_cast<Other*>(self->manager_ctx);
      one->theirs->deleter(one->theirs);
      delete one;
      ++deleted;
    };
    return from_dlpack(&other->managed);
  };
  std::vector<float> numbers(32);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const auto there = [&] { return from_host(numbers, {32}).to(cuda); };
  {
    DLManagedTensor* out = to_dlpack(there());
    EXPECT_EQ(out->dl_tensor.device.device_type, kDLCUDA);
    EXPECT_EQ(out->dl_tensor.device.device_id, 0);
    const Tensor x = imported(out, 0);
    EXPECT_EQ(x.device(), cuda);
    DLManagedTensor* again = to_dlpack(x);
    EXPECT_EQ(again->dl_tensor.data, out->dl_tensor.data) << "no copy";
    again->deleter(again);
    EXPECT_EQ((x + 1).to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
  EXPECT_EQ((imported(to_dlpack(there()), 0, {1, 2}) * 2).to_vector<float>(), (std::vector<float>{0, 4, 8, 2, 6, 10}));
  EXPECT_EQ(deleted, 2);
  const Tensor moved = imported(to_dlpack(there()), 4);  // generated code asks for more than an element's alignment
  EXPECT_EQ(deleted, 3) << "copied";
  EXPECT_EQ((moved * 1).to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(error_of<UnsupportedError>([&] {
              imported(to_dlpack(there()), 0, {4, 1});
            }),
            "from_dlpack: the elements do not fill their memory on cuda:0 in a row; copy them to where they do (x: "
            "f32[2,3])");
  EXPECT_EQ(deleted, 4);
}

// A step overwrites parameters in their own memory, but not in that of somebody else.
TEST_F(CudaDevices, TrainingLeavesImportedMemoryAlone) {
  nn::Linear net(48, 4, false);
  net.to(cuda);
  const nn::Parameter weight = net.parameters()[0];
  optim::SGD opt({weight}, {.lr = 0.1, .momentum = 0.9});
  auto step = train_step(net, opt, [&](const Tensor& x) { return mean(square(net(x))); });
  const Tensor x = ones({2, 48}).to(cuda), theirs = (ones({4, 48}) * 2).to(cuda).eval();
  const std::vector<float> before = theirs.to_vector<float>();
  const auto address = [](const Tensor& tensor) {
    DLManagedTensor* out = to_dlpack(tensor);
    const void* data = out->dl_tensor.data;
    out->deleter(out);
    return data;
  };
  step(x).eval();
  const void* own = address(weight.value());
  step(x).eval();
  EXPECT_EQ(address(weight.value()), own);
  weight.set(from_dlpack(to_dlpack(theirs)));
  EXPECT_EQ(address(weight.value()), address(theirs));
  step(x).eval();
  EXPECT_NE(weight.value().to_vector<float>(), before);
  EXPECT_NE(address(weight.value()), address(theirs));
  EXPECT_EQ(theirs.to_vector<float>(), before);
}

TEST_F(CudaDevices, SpansAreOfTheHostAndViewsCopy) {
  const Tensor x = from_host(std::vector<float>{1, 2, 3, 4}, {2, 2}).to(cuda);
  EXPECT_EQ(error_of([&] { x.span<float>(); }),
            "span: the elements are on cuda:0; .to(\"cpu\") copies them (x: f32[2,2])");
  EXPECT_EQ(host_view<float>(x * 2)(1, 0), 6);
}

TEST_F(CudaDevices, ModulesMoveWithTheirOptimisersAndFiles) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("fusejit_moved_" + std::to_string(getpid()) + ".npz")).string();
  nn::Sequential net(nn::Linear(3, 4), nn::ReLU(), nn::Linear(4, 2));
  optim::Adam opt(net.parameters(), {.lr = 0.001});  // before the move: its state follows
  const std::vector<nn::Parameter> parameters = net.parameters();
  const std::vector<float> before = parameters[0].value().to_vector<float>();
  net.to("cuda:0");
  EXPECT_EQ(parameters[0].value().device(), cuda);
  EXPECT_TRUE(parameters[0].value().needs_grad());
  EXPECT_EQ(parameters[0].value().to_vector<float>(), before);
  auto step = train_step(net, opt, [&](const Tensor& x) { return sum(square(net(x))); });
  const double first = step(ones({2, 3}).to(cuda)).item<double>();
  for (int s = 0; s < 5; ++s) step(ones({2, 3}).to(cuda));
  EXPECT_LT(step(ones({2, 3}).to(cuda)).item<double>(), first);
  for (const auto& [name, value] : opt.state_dict()) {
    const bool is_of_parameter = name.find('.') != std::string::npos;  // else a number of the optimiser's
    EXPECT_EQ(value.device(), is_of_parameter ? cuda : Device()) << name;
  }
  net.save(file);
  const std::vector<float> saved = parameters[0].value().to_vector<float>();
  const StateDict moments = opt.state_dict();
  step(ones({2, 3}).to(cuda));
  net.load(file);
  opt.load_state_dict(moments);
  EXPECT_EQ(parameters[0].value().device(), cuda);
  EXPECT_EQ(parameters[0].value().to_vector<float>(), saved);
  EXPECT_EQ(load(file).at("0.weight").device(), Device());
  const Frozen frozen = net.freeze();
  frozen.compile({f32, {1, 3}});
  EXPECT_EQ(frozen(ones({1, 3}).to(cuda)).device(), cuda);
  EXPECT_EQ(frozen(ones({1, 3}).to(cuda)).to_vector<float>(), net(ones({1, 3}).to(cuda)).to_vector<float>());
  EXPECT_NE(error_of([&] {
              parameters[0].set(zeros({4, 3}));
            }).find("is f32[4,3] on cuda:0, the new value"),
            std::string::npos);
  net.to("cpu");
  EXPECT_EQ(net(ones({1, 3})).device(), Device());
  std::filesystem::remove(file);
}

TEST_F(CudaDevices, AStepMayHaveOutputsElsewhere) {
  Strings lines;
  set_log([&](std::string_view line) { lines.emplace_back(line); });
  const auto weights_after = [](bool elsewhere) {
    manual_seed(5);
    nn::Linear net(3, 2);
    net.to("cuda:0");
    optim::SGD opt(net.parameters(), {.lr = 0.1});
    auto step = train_step(net, opt, [&](const Tensor& x) {
      const Tensor loss = sum(square(net(x)));
      return elsewhere ? std::vector{loss, ones({2}) * 3} : std::vector{loss};
    });
    for (int s = 0; s < 3; ++s) {
      const std::vector<Tensor> outputs = step(ones({2, 3}).to("cuda:0"));
      EXPECT_EQ(outputs.back().to_vector<float>()[0] == 3, elsewhere);
    }
    return net.parameters()[0].value().to_vector<float>();
  };
  EXPECT_EQ(weights_after(true), weights_after(false));
  set_log({});
  EXPECT_EQ(lines, Strings{"cuda:0: convolutions are generated kernels: cuDNN: it is switched off"});
}

TEST_F(CudaDevices, MemoryIsCountedAndLimited) {
  const std::int64_t before = memory::allocated(cuda), here = memory::allocated();
  const std::int64_t mebibyte = 1 << 20;
  {
    const Tensor x = ones({1024, 1024}).to(cuda);
    EXPECT_GE(memory::allocated(cuda) - before, 4 * mebibyte);
    EXPECT_LT(memory::allocated() - here, mebibyte) << "the host's copy is gone";
    const Tensor y = (x + 1).eval();
    EXPECT_GE(memory::peak(cuda) - before, 8 * mebibyte);
    memory::reset_peak(cuda);
    EXPECT_LT(memory::peak(cuda) - before, 9 * mebibyte);
    memory::set_limit(10 * mebibyte, cuda);
    const std::string error = error_of<DeviceError>([&] { (x + y).eval(); });
    EXPECT_NE(error.find("cuda:0: out of memory: 4.0 MiB asked for with 8.0 MiB in use"), std::string::npos) << error;
    EXPECT_NE(error.find("the limit set is 10.0 MiB"), std::string::npos) << error;
    EXPECT_EQ((ones({2}) + 1).to_vector<float>()[1], 2) << "the processor goes on";
    memory::set_limit(0, cuda);
    EXPECT_EQ((x + y).to_vector<float>()[7], 3) << "and so does the device";
  }
  EXPECT_EQ(memory::allocated(cuda), before);
  EXPECT_THROW(memory::set_limit(-1, cuda), UserError);
  EXPECT_THROW(memory::set_limit(-1), UserError);
}

TEST_F(CudaDevices, AfterABadKernelTheDeviceIsLostAndTheProcessorGoesOn) {
  const Tensor x = ones({4}).to(cuda);
  EXPECT_EQ((x + 1).to_vector<float>()[0], 2);
  gpu->driver.break_next_kernel(700);
  const std::string error = error_of<DeviceError>([&] { (x * 3).to_vector<float>(); });
  EXPECT_NE(error.find("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), std::string::npos) << error;
  EXPECT_NE(error.find("the device is lost to this process; the CPU still works"), std::string::npos) << error;
  const std::string later = error_of<DeviceError>([&] { (x + 1).eval(); });
  EXPECT_TRUE(later.starts_with("cuda:0 was lost by an earlier error: ")) << later;
  EXPECT_THROW(x.to("cpu"), DeviceError);
  EXPECT_THROW(synchronize(cuda), DeviceError);
  EXPECT_EQ((ones({4}) + 1).to_vector<float>()[0], 2);
}

TEST_F(CudaDevices, EveryEngineRunsWhatIsThere) {
  const Tensor x = from_host(std::vector<float>{1, 2, 3, 4}, {4}).to(cuda);
  for (const runtime::Engine engine : {runtime::Engine::graph_interpreter, runtime::Engine::kernel_interpreter}) {
    set_session({.engine = engine, .threads = 1, .backend = gpu->backend});
    const Tensor y = (x * x).eval();
    EXPECT_EQ(y.device(), cuda);
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 4, 9, 16}));
  }
  EXPECT_EQ(gpu->driver.launches().size(), 0u);
}

// Sets a variable of the environment while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

// Nothing falls back: there is nothing to compile, so strict mode has nothing to say.
TEST_F(CudaDevices, OpsOnEmptyValuesNeedNoKernelAndComeBack) {
  const Variable strict("FUSEJIT_STRICT", "1");
  const Tensor empty = from_host(std::vector<float>{}, {0, 3}).to(cuda), x = ones({2}).to(cuda);
  const Tensor total = (sum(empty) + x).eval();
  EXPECT_EQ(total.device(), cuda);
  EXPECT_EQ((total * 2).to_vector<float>()[1], 2);
  EXPECT_EQ(stats().fallbacks, 0);
}

TEST_F(CudaDevices, WithoutCudnnConvolutionsAreGenerated) {
  const Variable nowhere("FUSEJIT_CUDNN", "/no/such/libcudnn.so.9");
  Strings lines;
  set_log([&](std::string_view line) { lines.emplace_back(line); });
  gpu->use({.threads = 1}, true);
  const Tensor x = ones({1, 1, 4, 4}).to(cuda), w = ones({2, 1, 3, 3}).to(cuda);
  EXPECT_EQ(conv2d(x, w).to_vector<float>()[0], 9);
  set_log({});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].starts_with("cuda:0: convolutions are generated kernels: cuDNN: ")) << lines[0];
}

TEST_F(CudaDevices, ThreadsShareADevice) {
  std::vector<std::thread> threads;
  std::vector<double> losses(4);
  for (std::size_t t = 0; t < losses.size(); ++t) {
    threads.emplace_back([&, t] {
      nn::Linear net(3, static_cast<std::int64_t>(2 + t % 2));
      for (const nn::Parameter& p : net.parameters()) p.set(zeros(p.value().shape()));
      net.to(cuda);
      optim::SGD opt(net.parameters(), {.lr = 0.1});
      auto step = train_step(net, opt, [&](const Tensor& x) { return sum(square(net(x) - 1)); });
      for (int s = 0; s < 20; ++s) losses[t] = step(ones({2, 3}).to(cuda)).item<double>();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(losses[0], losses[2]);
  EXPECT_EQ(losses[1], losses[3]);
  EXPECT_LT(losses[0], 1);
}

}  // namespace
}  // namespace fusejit
