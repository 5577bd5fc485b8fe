// Evaluation: from recorded values and graphs to computed ones.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "frontend/evaluation/donations.h"
#include "frontend/state.h"
#include "ir/graph.h"

namespace fusejit {

// Computes all of `wanted`, in one plan if they live on one device, and with them the pending module state that shares
// work with them. Afterwards each handle holds its value; on an exception nothing has changed.
void evaluate(std::span<const Tensor> wanted, std::span<const Donation> donations = {},
              const std::string& name = "main");
// The same, but what shares work with `later` too, beyond what is wanted, waits until that is computed: else it would
// be computed twice.
void evaluate_before(std::span<const Tensor> later, std::span<const Tensor> wanted);

// The same value on a device. Throws DeviceError, UnsupportedError.
runtime::Buffer place(const runtime::Buffer& buffer, const Device& device);
// A value at an address of the device, which is somebody else's until `deleter` is called, once. Throws DeviceError,
// UnsupportedError.
runtime::Buffer borrow_on(const Device& device, std::uint64_t address, const Type& type, std::function<void()> deleter);
// Plans and compiles a graph as a run on the device would; per parameter: what may be overwritten, what never changes.
void prepare_graph(const ir::Graph& graph, const Device& device, const std::vector<bool>& donated,
                   const std::vector<bool>& fixed);
// Runs a graph on buffers as the default session of the cpu does.
std::vector<runtime::Buffer> run_graph(const ir::Graph& graph, std::span<const runtime::Buffer> arguments);

// The buffer of an evaluated tensor; evaluates it first if need be.
runtime::Buffer buffer_of(const Tensor& tensor);

// Unless a step is being recorded, which knows its own: while the tensor's handle is there, the next plan that shares
// work with it computes it too. For what a module or optimiser keeps, gradients of a loss, and what is computed of
// them.
void join_plans(const Tensor& tensor);

}  // namespace fusejit
