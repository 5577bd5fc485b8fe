// Planning and compiling before it is needed, so that no step waits for it. What was made stays on disk
// (Options::cache): in the next process, and in those of other programs, the same traces are loaded in milliseconds.
//
// Three ways: a function of tensors is compiled for its types (`compile`); a run records what it planned, and another
// one warms up with that (`record_signatures`, `warmup`); or the command `fusejit warmup` does so before any program
// runs, in several processes, for this machine or another one.
//
//   auto f = [](fj::Tensor x) { return fj::softmax(fj::relu(x), 1); };
//   fj::compile(f, {{fj::f32, {8, 10}}});
//   fj::Tensor y = f(fj::ones({8, 10}).eval()).eval();  // compiles nothing
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fusejit/device.h"
#include "fusejit/dtype.h"
#include "fusejit/shape.h"
#include "fusejit/tensor.h"

namespace fusejit {

// The type of an input: {fj::f32, {16, 3, 224, 224}}.
struct InputType {
  DType dtype = f32;
  Shape shape;
};

namespace detail {

// Stand-ins for evaluated tensors of these types, where new tensors are made.
std::vector<Tensor> stand_ins(const InputType* inputs, std::size_t count);
// Plans and compiles what computes `outputs` at once, and runs nothing.
void compile_outputs(const std::vector<Tensor>& outputs);

inline std::vector<Tensor> list_of(Tensor output) { return {std::move(output)}; }
inline std::vector<Tensor> list_of(std::vector<Tensor> outputs) { return outputs; }

}  // namespace detail

// Plans and compiles f for inputs of these types now: what f(x, …).eval() runs. f gives a tensor, or several in a
// vector that are evaluated together; it may call modules, frozen networks and grad(). Nothing is computed. UserError
// as f's; UnsupportedError and DeviceError if it cannot be compiled.
template <class F, std::size_t count>
void compile(F&& f, const InputType (&inputs)[count]) {
  const std::vector<Tensor> given = detail::stand_ins(inputs, count);
  [&]<std::size_t... i>(std::index_sequence<i...>) { detail::compile_outputs(detail::list_of(f(given[i]...))); }
  (std::make_index_sequence<count>());
}

// From now on every new plan's signature (graph, types, what may be overwritten; no values and no machine code) is
// appended to this file, a line of JSON each; "" ends it. Several processes may share a file. FUSEJIT_RECORD=FILE does
// so from the start. FileError if it cannot be written.
void record_signatures(const std::string& path);

// How far a warm-up is.
struct WarmupProgress {
  std::int64_t done = 0, total = 0;  // signatures
  std::int64_t kernels_compiled = 0;
};
struct WarmupOptions {
  std::function<void(const WarmupProgress&)> progress = {};  // after each signature, on this thread
  double budget_seconds = 0;                                 // none is begun after that; 0: no budget
  Device device = {};  // for signatures of CUDA devices; the cpu: those are left out
};
// What a warm-up did.
struct WarmupReport {
  std::int64_t signatures = 0;  // that were made ready
  std::int64_t plans_made = 0, plans_loaded = 0;
  std::int64_t kernels_compiled = 0, kernels_loaded = 0;
  double seconds = 0;
  // A sentence each: damaged lines, what could not be compiled, what was left out.
  std::vector<std::string> left_out;
};
// Makes the plans of a signature file ready in this process, in memory and on disk, several kernels at a time.
// FileError, and UserError if nothing in the file is a signature.
//
//   fj::warmup("run.fjs", {.progress = [](const fj::WarmupProgress& p) { std::cout << p.done << '/' << p.total << '\n';
//   }});
WarmupReport warmup(const std::string& signatures, const WarmupOptions& options = {});

}  // namespace fusejit
