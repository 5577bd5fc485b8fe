// Machine: what sections work with: the device, opened at first use, and plans on it. A test puts a driver without a
// device and toy sizes in it.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "ir/graph.h"
#include "runtime/cuda/backend.h"

namespace fusejit::gpu_check {

using runtime::Buffer;

struct MachineOptions {
  std::function<std::shared_ptr<runtime::cuda::CudaDevice>()> open;  // empty: cuda:0 of the installed driver
  runtime::cuda::CompileProgram compile = codegen::cuda::compile;
  bool cudnn = true;
  bool toy = false;               // sizes and times for tests
  double minutes = 3;             // a section looks at the clock between its cases
  std::filesystem::path carried;  // cubins and plans made on another machine
  std::filesystem::path data;     // IDX files; empty: made up
  std::filesystem::path peers;    // the scripts that measure others
};

// A graph, planned and compiled for the device.
struct Planned {
  ir::Graph graph;
  std::shared_ptr<const scheduler::Plan> plan;
  std::shared_ptr<runtime::cuda::CudaExecutor> executor;
  std::vector<bool> donated;
  runtime::CudaBackend* backend = nullptr;
};

struct PlanWish {
  scheduler::Rules rules = scheduler::Rules::all;
  CudnnMode cudnn = CudnnMode::off;
  bool tf32 = false;       // for cuDNN's calls; without it convolutions of f32 are none
  bool fast_norm = false;  // Target::fast_norm
  int timed_engines = 1;   // of cuDNN, for each call
  std::vector<bool> donated = {};
};

class Machine {
 public:
  explicit Machine(MachineOptions options) : options_(std::move(options)) {}
  const MachineOptions& options() const { return options_; }
  bool toy() const { return options_.toy; }

  runtime::cuda::CudaDevice& device();
  std::shared_ptr<runtime::cuda::CudaDevice> shared_device();
  // Plans whose convolutions are, or are not, calls of cuDNN. Refusals of the library are its.
  runtime::CudaBackend& backend(bool cudnn, bool tf32 = false, int timed_engines = 1);
  Target target(CudnnMode cudnn);

  Planned plan(const ir::Graph& graph, const PlanWish& wish = {});
  // Results on the device.
  std::vector<Buffer> run(const Planned& planned, std::span<const Buffer> arguments);
  std::vector<Buffer> download(const std::vector<Buffer>& buffers);
  std::vector<Buffer> upload(const std::vector<Buffer>& buffers);

  // Median milliseconds of the device for one `once`, which puts work on its stream.
  double milliseconds(const std::function<void()>& once);

 private:
  MachineOptions options_;
  std::shared_ptr<runtime::cuda::CudaDevice> device_;
  std::map<std::tuple<bool, bool, int>, std::unique_ptr<runtime::CudaBackend>> backends_;  // by what backend() is given
};

// Whether a section that began now has used up its time.
class Clock {
 public:
  explicit Clock(const Machine& machine);
  double seconds() const;
  bool over() const { return seconds() > limit_; }

 private:
  double start_, limit_;
};

}  // namespace fusejit::gpu_check
