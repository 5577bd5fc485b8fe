#include "scheduler/lower/expression/kept_maxima.h"

#include <algorithm>

#include "ir/base/check.h"
#include "scheduler/lower/split.h"
#include "scheduler/lower/tuning.h"

namespace fusejit::scheduler {

using ir::Arg;
using ir::Binding;
using ir::Index;

namespace {

bool overlaps(const Window& window) { return window.most_windows() > 1; }

// The axis that is this dim alone; axes.size() if there is none.
std::size_t axis_of(const std::vector<Axis>& axes, int dim) {
  const auto found = std::find_if(axes.begin(), axes.end(), [&](const Axis& a) { return a.dims == std::vector{dim}; });
  return static_cast<std::size_t>(found - axes.begin());
}

}  // namespace

int overlapping_pool_grad(const LowerContext& context, const Group& group) {
  const Type& domain = group.domain;
  if (context.target.isa == Isa::cuda || context.target.isa == Isa::any || group.anchor >= 0) return -1;
  if (domain.shape.rank() != 4 || physical_order(domain) != std::vector<int>{0, 2, 3, 1}) return -1;
  for (const int d : {1, 2, 3}) {
    if (domain.shape[d] == 1) return -1;
  }
  // Sums go down whole images: their rows and columns are the innermost loops.
  const std::vector<bool>& reduced = group.reduced;
  if (!reduced.empty() && (reduced[1] || !reduced[2] || !reduced[3])) return -1;
  for (const auto* list : {&group.inner, &group.stores}) {
    for (const int id : *list) {
      const ir::Node& node = *context.graph.value(id);
      if (node.op != ir::Op::max_pool2d_grad || node.type.shape != domain.shape) continue;
      const Window rows = pooled_window(node, 0), columns = pooled_window(node, 1);
      const std::int64_t places = rows.most_windows() * columns.out * domain.shape[1];
      if (columns.stride <= tuning::kMostColumnsOfMaxima && (overlaps(rows) || overlaps(columns)) &&
          places * 4 <= tuning::kMostBytesOfMaxima)
        return id;
    }
  }
  return -1;
}

KeptMaxima::KeptMaxima(GroupKernel& kernel, int node) : kernel_(kernel), node_(node) {
  if (node < 0) return;
  const ir::Node& grad = *kernel.graph().value(node);
  rows_ = pooled_window(grad, 0), columns_ = pooled_window(grad, 1);
  const std::vector<Axis>& axes = kernel.space().axes;
  row_axis_ = axis_of(axes, 2), column_axis_ = axis_of(axes, 3);
  FJ_ASSERT(row_axis_ < axes.size() && column_axis_ == row_axis_ + 1, "rows and columns are axes of their own");
}

void KeptMaxima::declare(std::int64_t channels) {
  scratch_ =
      kernel_.builder().local(ir::MemKind::scratch_local, DType::i32, {rows_.most_windows(), columns_.out, channels});
  kernel_.expression().keep_maxima(-1, {}, {});  // until use(): nothing is found yet
}

void KeptMaxima::enter(const Index& h, const EachVector& each_vector) {
  find(rows_.first_window(h), rows_.end_window(h - Index(1)), each_vector);
}

void KeptMaxima::begin(const Index& h, const EachVector& each_vector) {
  find(rows_.end_window(h - Index(1)), rows_.end_window(h), each_vector);
}

// Rows [low, high) of windows, as far as there are such.
void KeptMaxima::find(const Index& low, const Index& high, const EachVector& each_vector) {
  ir::KernelBuilder& builder = kernel_.builder();
  const ir::Node& grad = *kernel_.graph().value(node_);
  // The windows from `left` to `right` have all their columns inside.
  const std::int64_t left = std::clamp<std::int64_t>(columns_.first_result_of_tap(std::int64_t{0}), 0, columns_.out);
  const std::int64_t right =
      std::clamp<std::int64_t>(columns_.end_result_of_tap(columns_.kernel - 1), left, columns_.out);
  builder.loop({Index(0), low}, {Index(rows_.out), high}, Binding::none, [&](Index p) {
    const auto some = [&](std::int64_t begin, std::int64_t end) {
      if (begin == end) return;
      builder.loop(Index(begin), Index(end), Binding::none, [&](Index q) {
        if (beside_) beside_(p, q);
        each_vector([&](const Index& channel) {
          kernel_.expression().nested([&] {
            const LogicalIndex here = kernel_.here();
            const Arg place = kernel_.expression().first_maximum(grad, {here[0], here[1], p, q});
            builder.store(scratch_, {p % rows_.most_windows(), q, channel}, place);
          });
        });
      });
    };
    some(0, left), some(left, right), some(right, columns_.out);
  });
}

std::int64_t KeptMaxima::copies_of_rows() const {
  return rows_.stride <= tuning::kMostColumnsOfMaxima ? rows_.stride : 1;
}

void KeptMaxima::columns(const std::function<void(const Index& w)>& body) {
  in_copies(kernel_.builder(), columns_.in, columns_.stride, body);  // a constant says which windows are over one
}

void KeptMaxima::use(const Index& channel) {
  kernel_.expression().keep_maxima(node_, kernel_.here(), [this, channel](const Index& p, const Index& q) -> Arg {
    return kernel_.builder().load(scratch_, {p % rows_.most_windows(), q, channel});
  });
}

}  // namespace fusejit::scheduler
