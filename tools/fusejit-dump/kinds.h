// What a kernel or an op is mainly busy with: the colours of pictures and the parts of bars.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/op.h"
#include "scheduler/plan.h"

namespace fusejit::tools {

enum class Kind : std::uint8_t {
  convolution,
  weight_gradient,
  pooling,
  reduction,
  elementwise,
  composite,
  view,
  packing,
  library
};
inline constexpr int kKinds = 9;

Kind kind_of(const scheduler::PlanStep& step);
// Of an op as recorded.
Kind kind_of(ir::Op op);

struct KindLook {
  std::string_view style;   // a class of CSS
  std::string_view name;    // for people
  std::string_view colour;  // one that is seen on white and on black
};
const KindLook& look(Kind kind);
// CSS that gives everything of a kind's class the variable --kind, its colour.
std::string kind_styles();

}  // namespace fusejit::tools
