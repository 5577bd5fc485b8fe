// Draft: a Plan before memory has been given out. rules=none joins the drafts of single ops.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scheduler/plan.h"

namespace fusejit::scheduler {

enum class DraftKind : std::uint8_t { parameter, constant, temporary };

struct DraftValue {
  DraftKind kind = DraftKind::temporary;
  int parameter = -1;
  DType dtype = DType::f32;
  std::int64_t bytes = 0;
  std::string label;
  std::vector<std::byte> data;
  int inside = -1;        // the draft value in whose memory it lies
  std::int64_t from = 0;  // bytes from where that begins
};

struct Draft {
  std::vector<DraftValue> values;
  std::vector<PlanStep> steps;  // `values` index into this draft
  std::vector<int> results;     // draft value of each result
  std::vector<Refusal> refusals;
  std::vector<Fallback> fallbacks;
};

}  // namespace fusejit::scheduler
