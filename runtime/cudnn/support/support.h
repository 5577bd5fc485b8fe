// supports(call): whether cuDNN has an engine for a call, asked without cuDNN: from a table that `cudnn_probe`
// generates by planning every cell for a described device. The answer is a forecast for the scheduler; `find_plans` has
// the last word on a given shape.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cudnn/graph/plan.h"

namespace fusejit::runtime::cudnn {

// A row's steps: a call with nothing but its direction and steps filled in.
struct Pattern {
  std::string_view name;
  ConvolutionCall steps;
};
// Of a row: what is special about the shape. A call with several features needs a yes in each of their rows.
struct ShapeClass {
  std::string_view name;
  std::string_view meaning;
};
// Of a cell: architecture, precision (f32 is strict, tf32 lets tensor cores round it) and layout.
struct Column {
  int compute_capability;
  DType dtype;
  bool tf32;
  Layout layout;
  std::string name() const;  // "sm_90 f16 nhwc"
};

std::span<const Pattern> patterns();
std::span<const ShapeClass> shape_classes();
inline constexpr int kColumns = 24;
Column column(int index);
// The call that is planned for a cell.
ConvolutionCall sample_call(const Pattern& pattern, int shape_class, const Column& column);

// A cell: 'P' precompiled, 'R' runtime-compiled, 'S' both, the precompiled one being the engine without tensor cores;
// '?' not probed; a lower-case letter: none, for reasons()[letter − 'a'].
std::string_view cells(int pattern, int shape_class);
std::span<const std::string_view> reasons();
// The version of cuDNN that the table was made with, 91900 for 9.19.0.
int table_version();

struct Support {
  bool ok = false;
  Tier tier = Tier::precompiled;
  bool slow = false;     // the precompiled engine is the old one without tensor cores, a runtime-compiled one has them
  std::string why = "";  // not ok: one sentence; ok: what is to be known of it, or empty
};
Support supports(const ConvolutionCall& call, int compute_capability, const Numerics& numerics = {});

}  // namespace fusejit::runtime::cudnn
