// What runs the traces: options, statistics, the log.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fusejit/device.h"

namespace fusejit {

//   fj::set_options({.rules = "none", .threads = 1});
struct Options {
  std::string engine = "compiled";  // "compiled", "graph_interpreter", "kernel_interpreter"
  // "x86:avx512", "x86:avx2", "x86:v2", "host": for the cpu. "cuda:sm_90,...": for CUDA devices, in place of their own.
  std::string target = "host";
  // "all"; "none": one kernel per recorded op; "-R5,-R6": without these fusion rules (docs/fusion.md); "inductor": a
  // model of what TorchInductor fuses, to compare with.
  std::string rules = "all";
  // What a trace may need of memory at once: its arguments (parameters, state, the batch), its results and everything
  // in between. "none"; "800MiB", "1.5GiB", "838860800": values of the forward pass are not kept for the backward pass
  // but computed again there, those first that free most for their time, until it is met; a UserError before anything
  // runs if it cannot be, with the least that is needed. "least": as little as that reaches. Gradients are the same
  // but for rounding.
  // What is expected, and the time it takes, is in the log and in stats().last_plan. memory::set_limit() is another
  // thing: what is refused when it is asked for.
  std::string memory_limit = "none";
  int threads = 0;             // 0: every processor
  std::string device = "cpu";  // where new tensors are made: "cpu", "cuda:0"
  // What cuDNN does on CUDA devices: "off"; "precompiled": convolutions, with what its precompiled engines do beside
  // them; "compiled": also with what the engines do that it compiles at run time, 0.4 to 4 s each: other activations,
  // batch norm with known statistics, and in training masks and sums behind input gradients.
  std::string cudnn = "precompiled";
  // Convolutions of f32 tensors on CUDA devices may round their operands to TF32, 10 bits of mantissa, for tensor
  // cores: errors of a few 1e-4 of the results' size where they are 1e-6, and a step of ResNet-50 in a quarter of the
  // time (H200). PyTorch's default is true, and false for products of matrices, which are exact here in any case.
  bool tf32 = false;
  // Statistics of batch norm behind convolutions of f16 on CUDA devices. "exact": as everywhere, of differences from a
  // value near the mean. "fast": those that cuDNN's engines leave beside the convolution, sums of values and of their
  // squares, which saves a pass over each convolution's result; a variance is then off by a few 2^-24
  // (mean/deviation)^2 of itself. Only where the sums are deterministic: sm_80 and sm_90.
  std::string batch_norm = "exact";
  // Winograd's F(4x4, 3x3) in place of products of 3x3 taps, f32, f16 and bf16 on the cpu: a quarter of the products,
  // or half of them with a stride of two, in f32, with errors of a few 1e-5 of the results' size where they are 1e-6
  // without. "off"; "auto": where it is expected to be faster; "always": wherever it can be used.
  std::string winograd = "off";
  // "background": a new trace runs with code that was made in less than half the time and takes two to three times as
  // long, until the real code is there; its bits are the same. On CUDA devices, with cudnn "compiled", it runs as with
  // "precompiled" until its engines are there, and results may change in the last bits then. finish_compiling() waits
  // for it. The end of the process waits for the kernel or engine that is being compiled.
  std::string compile = "foreground";
  // Schedules of kernels chosen by their time, before a trace runs for the first time, and kept in the cache on disk
  // with its plan. "quick": the first few other ones of each kernel, with the same bits, in about the time of fifty
  // steps and of compiling five times. "full": all that are near, also those that sum in another order, for as long as
  // it helps, in some ten times as long. On CUDA devices "full" times the first few engines that cuDNN offers for a
  // call. Another machine, or another run without the cache, may choose others: with "full" in the last bits too. It
  // takes memory for the trace's arguments twice while it runs, for frozen weights three times.
  std::string tune = "off";
  // "allow": what cannot be compiled as planned is compiled in parts, and an op that cannot be compiled at all is
  // interpreted: slower, with right results; counted in stats().fallbacks, and the log says why. "error": such a trace
  // is an UnsupportedError.
  std::string fallback = "allow";
  // Plans and kernels outlive the process: "on"; "read": none is added; "off". They are kept in FUSEJIT_CACHE_DIR, else
  // in fusejit/compiled under $XDG_CACHE_HOME or ~/.cache. FUSEJIT_CACHE=read or =off in the environment has the last
  // word. A folder that cannot be used is said once in the log, and nothing is kept.
  std::string cache = "on";
  // What is in no cache is a UserError that names it and what differs from the nearest entry, instead of being made: no
  // step waits for a compiler. FUSEJIT_FREEZE=1 does the same.
  bool freeze = false;
  // The log has a line for each kernel that computes several recorded operations, as its plan is made or loaded.
  bool log_fusions = false;
};
// Replaces the default session: caches start empty. Values computed so far stay. UserError for an unknown word,
// DeviceError or UnsupportedError for a device that cannot be used; then nothing has changed.
void set_options(const Options& options);
// As set last, or the defaults.
Options options();
// Waits for what is compiled in the background.
void finish_compiling();

// A device that can be used.
struct DeviceInfo {
  Device device;
  std::string name;  // "NVIDIA H100", or the processor's instruction set
  std::int64_t memory_bytes = 0;
  std::string target;  // what code is generated for
};
// Those that can be used: the cpu, then CUDA devices.
std::vector<DeviceInfo> devices();
// Why a device cannot be used, with what to try; empty if it can.
std::string why_unavailable(const Device& device);
inline bool is_available(const Device& device) { return why_unavailable(device).empty(); }
// Waits until everything given to a device is done. DeviceError if something went wrong there.
void synchronize(const Device& device);

// Of the plan that ran last.
struct PlanStatistics {
  std::int64_t kernels = 0;               // launches
  std::int64_t ledger_bytes = 0;          // distinct bytes touched, over all launches
  std::int64_t bound_bytes = 0;           // no plan with a kernel for each convolution and product touches less
  std::int64_t arena_bytes = 0;           // of the one allocation that holds all inner values
  std::int64_t memory_bytes = 0;          // arguments, results and arena: what a run needs at once
  std::int64_t recomputed = 0;            // values that are computed again to meet Options::memory_limit
  double extra_time = 0;                  // share of a step's time that this is expected to take
  std::int64_t end_of_forward_bytes = 0;  // alive when the first result, a step's loss, was written
  double kernel_milliseconds = 0;  // wall time of the launches, the rest of a step is the host's; 0 for a CUDA device
};

// Of all devices together.
struct Statistics {
  std::int64_t evaluations = 0;  // plans run
  std::int64_t traces = 0;       // different traces seen
  std::int64_t trace_cache_hits = 0;
  std::int64_t plans_made = 0;
  std::int64_t plans_loaded = 0;  // those of plans_made that came from disk
  std::int64_t plan_cache_hits = 0;
  std::int64_t kernels_compiled = 0;
  std::int64_t kernels_loaded = 0;  // from disk
  std::int64_t kernel_cache_hits = 0;
  // Traces, plans and kernels that were forgotten to make room, those not used for longest first: there are 512, 256
  // and 4096 at most, of about 64, 256 and 256 MiB.
  std::int64_t evictions = 0;
  std::int64_t fallbacks = 0;            // 0, unless something is wrong with fusejit: see Options::fallback
  double compile_milliseconds = 0;       // wall time of making or loading plans and kernels
  std::int64_t graph_launches = 0;       // plans run as one launch of a CUDA graph
  std::int64_t background_plans = 0;     // plans made in the background that took their place
  std::int64_t background_failures = 0;  // those that could not be made
  PlanStatistics last_plan;
  // One line: "3 plans (2 from disk) and 175 kernels (172 from disk, 3 compiled) in 94 ms, for 1200 evaluations".
  std::string str() const;
};
// Of the default session, since it was made (set_options makes another). FUSEJIT_STATS=1 in the environment sends the
// line of the last one to stderr when the process ends.
Statistics stats();

// The log speaks of lost chances (a split step, an argument that could not be donated, a fallback) and, on request, of
// what is fused: a line each. Silent unless a function is set; FUSEJIT_LOG=1 in the environment sends lines to stderr,
// FUSEJIT_LOG=fusions those on fusion too. Their form, `fusion contraction=conv1/conv2d activation=relu ops=2
// kernel=conv1_relu saved_bytes=8192`, is that of docs/fusion.md.
//   fj::set_log([](std::string_view line) { std::cout << line << '\n'; });
//   fj::set_options({.log_fusions = true});
void set_log(std::function<void(std::string_view line)> log);

// A chain of recorded operations longer than this is evaluated on the spot, so that a loop that never asks for a value
// does not grow without bound. Default 10000.
void set_trace_limit(int operations);

// Whether every use of borrowed memory verifies that its owner has not changed it. Default: debug builds only.
void check_borrowed(bool on);

}  // namespace fusejit
