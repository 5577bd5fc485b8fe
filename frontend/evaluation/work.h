// Work: one plan's worth of it, between recording and running: what is to be computed, from which arguments.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/evaluation/donations.h"
#include "frontend/evaluation/trace.h"
#include "frontend/state.h"

namespace fusejit {

struct Work {
  Trace trace;
  std::vector<Tensor> wanted;  // not yet evaluated; wanted[i] is result i of the trace
  std::vector<runtime::Buffer> arguments;
  std::vector<Gift> gifts;  // of each argument
  std::vector<runtime::Buffer> results;
  std::vector<ir::Value> leaves;                   // what the wanted ones become
  std::vector<std::shared_ptr<Attachment>> notes;  // for those that stay nodes
  std::vector<ir::Value> garbage;                  // released after the lock
  Trace later;                                     // what is computed after this
  std::vector<Tensor> open;  // pending when this was traced; like all of this, released after the lock
};

// What is to be computed on one device.
struct Part {
  Device device;
  std::vector<Tensor> wanted;
};

std::vector<Part> parts_of(std::span<const Tensor> wanted);
// Traces the part and binds its arguments; waits for those that a plan which is running may overwrite. What shares work
// with `later` too waits until that is computed. `lines` gets a sentence for each lost chance.
Work prepare(const Part& part, std::span<const Tensor> later, std::span<const Donation> donations,
             std::vector<std::string>& lines);
// What the work was given is its owner's again, or nobody's. Caller holds the graph lock, here and below.
void give_back(const Work& work);
// Of an evaluated node.
runtime::Buffer argument_buffer(const ir::Node* node);

}  // namespace fusejit
