#include "ir/ops/geometry/window.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/ops/require.h"

namespace fusejit::ir {
namespace {

bool has_dilation(const Attrs& attrs) {
  const auto schema = attrs.schema();
  return std::any_of(schema.begin(), schema.end(), [](const AttrDef& def) { return def.name == "dilation"; });
}

// Attribute numbers stay far from overflow: extents are at most 2^40.
constexpr std::int64_t kLargest = std::int64_t{1} << 40;

void require_moderate(const InferContext& context, std::string_view attribute) {
  for (const std::int64_t value : context.attrs.ints(attribute))
    if (value > kLargest) context.fail(fmt::format("{} holds {}, more than 2^40", attribute, value));
}

}  // namespace

WindowAxis window_axis(const Attrs& attrs, std::size_t axis, std::int64_t in, std::int64_t kernel) {
  const auto padding = attrs.ints("padding");
  WindowAxis a{.in = in,
               .kernel = kernel,
               .stride = attrs.ints("stride")[axis],
               .low_padding = padding[axis],
               .high_padding = padding[axis + padding.size() / 2]};
  if (has_dilation(attrs)) a.dilation = attrs.ints("dilation")[axis];
  // Without a product that could overflow: the taps of a window that fits span at most the padded input.
  const std::int64_t room = a.in + a.low_padding + a.high_padding - 1;
  const bool fits = room >= 0 && (kernel == 1 || a.dilation <= room / (kernel - 1));
  a.out = fits ? floor_divide(room - a.dilation * (kernel - 1), a.stride) + 1 : 0;
  return a;
}

Window window(const Attrs& attrs, std::int64_t input_h, std::int64_t input_w, std::int64_t kernel_h,
              std::int64_t kernel_w) {
  return {window_axis(attrs, 0, input_h, kernel_h), window_axis(attrs, 1, input_w, kernel_w)};
}

Window checked_window(const InferContext& context, std::int64_t input_h, std::int64_t input_w, std::int64_t kernel_h,
                      std::int64_t kernel_w) {
  require_pair(context, "stride", 1);
  require_moderate(context, "stride");
  const auto padding = context.attrs.ints("padding");
  if (padding.size() != 4 || std::any_of(padding.begin(), padding.end(), [](std::int64_t p) { return p < 0; }))
    context.fail(
        fmt::format("padding must be four numbers [top, left, bottom, right], none negative, it is {}", padding));
  require_moderate(context, "padding");
  if (has_dilation(context.attrs)) {
    require_pair(context, "dilation", 1);
    require_moderate(context, "dilation");
  }
  const Window found = window(context.attrs, input_h, input_w, kernel_h, kernel_w);
  if (found.h.out < 1 || found.w.out < 1)
    context.fail(fmt::format("a window of {}x{} with dilation {}x{} does not fit into {}x{} with padding {}", kernel_h,
                             kernel_w, found.h.dilation, found.w.dilation, input_h, input_w, padding));
  return found;
}

}  // namespace fusejit::ir
