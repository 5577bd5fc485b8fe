#include "tests/gpu_check/machine.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "ir/base/check.h"
#include "scheduler/make_plan.h"

namespace fusejit::gpu_check {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

std::shared_ptr<runtime::cuda::CudaDevice> Machine::shared_device() {
  if (!device_) device_ = options_.open ? options_.open() : runtime::cuda::cuda_device(Device("cuda:0"));
  return device_;
}

runtime::cuda::CudaDevice& Machine::device() { return *shared_device(); }

runtime::CudaBackend& Machine::backend(bool cudnn, bool tf32, int timed_engines) {
  std::unique_ptr<runtime::CudaBackend>& backend = backends_[{cudnn, tf32, timed_engines}];
  if (!backend) {
    runtime::CudaBackendOptions options;
    options.compile = options_.compile;
    options.cudnn = cudnn;
    options.numerics.tf32 = tf32;
    options.timed_engines = timed_engines;
    backend = std::make_unique<runtime::CudaBackend>(shared_device(), options);
  }
  return *backend;
}

Target Machine::target(CudnnMode cudnn) {
  Target target = device().target();
  target.cudnn = cudnn;
  return target;
}

Planned Machine::plan(const ir::Graph& graph, const PlanWish& wish) {
  Planned planned{graph, nullptr, nullptr, wish.donated,
                  &backend(wish.cudnn != CudnnMode::off, wish.tf32, wish.timed_engines)};
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  Target wanted = target(wish.cudnn);
  wanted.strict_f32 = wish.cudnn != CudnnMode::off && !wish.tf32;
  wanted.fast_norm = wish.cudnn != CudnnMode::off && wish.fast_norm;
  const auto made = planned.backend->plan(graph, {wanted, wish.rules, wish.donated});
  planned.plan = made->plan;
  planned.executor = planned.backend->load(*made, threads);
  return planned;
}

std::vector<Buffer> Machine::run(const Planned& planned, std::span<const Buffer> arguments) {
  FJ_CHECK(arguments.size() == planned.graph.parameters().size(), "graph @{} takes {} arguments, {} were given",
           planned.graph.name(), planned.graph.parameters().size(), arguments.size());
  return planned.backend->run(*planned.executor, planned.graph, arguments);
}

std::vector<Buffer> Machine::download(const std::vector<Buffer>& buffers) {
  std::vector<Buffer> result;
  for (const Buffer& buffer : buffers) result.push_back(device().download(buffer));
  return result;
}

std::vector<Buffer> Machine::upload(const std::vector<Buffer>& buffers) {
  std::vector<Buffer> result;
  for (const Buffer& buffer : buffers) result.push_back(device().upload(buffer));
  return result;
}

double Machine::milliseconds(const std::function<void()>& once) {
  using runtime::cuda::Event;
  runtime::cuda::DeviceContext& context = device().context();
  Event start(context, true), end(context, true);
  const auto measure = [&](int times) {
    start.record(device().stream());
    for (int i = 0; i < times; ++i) once();
    end.record(device().stream());
    end.synchronize();
    return end.elapsed_milliseconds(start) / static_cast<float>(times);
  };
  measure(toy() ? 1 : 3);  // plans settle, graphs are captured, clocks rise
  if (toy()) return measure(1);
  const double first = measure(1);
  const int times = std::clamp(static_cast<int>(20 / std::max(first, 1e-3)), 1, 200);  // 20 ms a measurement
  std::vector<double> measured;
  for (int i = 0; i < 7; ++i) measured.push_back(measure(times));
  std::sort(measured.begin(), measured.end());
  return measured[measured.size() / 2];
}

Clock::Clock(const Machine& machine) : start_(now()), limit_(60 * machine.options().minutes) {}
double Clock::seconds() const { return now() - start_; }

}  // namespace fusejit::gpu_check
