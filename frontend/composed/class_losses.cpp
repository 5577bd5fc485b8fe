// Losses of classes (fusejit/ops.h): the ops of these names, and, with weights of classes or targets that are
// probabilities, what those are composed of.
#include "frontend/context.h"
#include "frontend/ops/axis.h"
#include "frontend/record.h"
#include "fusejit/ops.h"
#include "ir/base/check.h"

namespace fusejit {
namespace {

using ir::Op;

Tensor reduced(const char* op, const Tensor& losses, const std::string& reduction) {
  FJ_CHECK(reduction == "mean" || reduction == "sum" || reduction == "none",
           "{}: reduction must be one of mean, sum, none, it is {} (losses: {})", op, reduction, text(losses));
  if (reduction == "none") return losses;
  return reduction == "sum" ? sum(losses) : mean(losses);
}

// [C] beside x: [N,C,...].
Tensor of_classes(const char* op, const Tensor& weight, const Tensor& x) {
  FJ_CHECK(is_float(weight.dtype()) && weight.rank() == 1 && x.rank() >= 2 && weight.size(0) == x.size(1),
           "{}: weight must be float, one number for each class (x: {}, weight: {})", op, text(x), text(weight));
  Dims shape(static_cast<std::size_t>(x.rank()), 1);
  shape[1] = x.size(1);
  return reshape(weight, shape);
}

// Each loss times the weight of its class; "mean" divides by the sum of those weights. What is ignored has no class and
// so no weight.
Tensor weighted(const char* op, const Tensor& logp, const Tensor& target, const ClassLossOptions& options) {
  const Tensor weight = of_classes(op, options.weight, logp);
  const Tensor losses = nll_loss(logp, target, {.reduction = "none", .ignore_index = options.ignore_index});
  Dims to_classes(static_cast<std::size_t>(logp.rank()));  // [N,...,C] -> [N,C,...]
  for (int axis = 0; axis < logp.rank(); ++axis)
    to_classes[static_cast<std::size_t>(axis)] = axis == 0 ? 0 : axis == 1 ? logp.rank() - 1 : axis - 1;
  const Tensor counted = where(target == options.ignore_index, -1, target);  // which is no class
  const Tensor each = sum(permute(one_hot(counted, logp.size(1), weight.dtype()), to_classes) * weight, {1});
  Tensor sums = losses * each;
  if (options.label_smoothing != 0) {
    const Tensor all = where(target == options.ignore_index, 0, -sum(logp * weight, {1}));
    const double share = options.label_smoothing;
    sums = sums * (1 - share) + all * (share / static_cast<double>(logp.size(1)));
  }
  if (options.reduction == "mean") return sum(sums) / sum(each);
  return reduced(op, sums, options.reduction);
}

Tensor of_probabilities(const Tensor& x, const Tensor& target, const ClassLossOptions& options) {
  FJ_CHECK(options.ignore_index == ClassLossOptions{}.ignore_index,
           "cross_entropy: a target of probabilities has no ignore_index (x: {}, target: {})", text(x), text(target));
  Tensor logp = log_softmax(x, 1), share = target;
  if (options.label_smoothing != 0)
    share = share * (1 - options.label_smoothing) + options.label_smoothing / static_cast<double>(x.size(1));
  if (options.weight.defined()) logp = logp * of_classes("cross_entropy", options.weight, x);
  return reduced("cross_entropy", -sum(share * logp, {1}), options.reduction);
}

}  // namespace

Tensor nll_loss(const Tensor& logp, const Tensor& target, const ClassLossOptions& options) {
  if (options.weight.defined()) {
    check_defined("nll_loss", logp);
    const CalledAs called("nll_loss");
    return weighted("nll_loss", wide(logp), target,
                    {.reduction = options.reduction, .ignore_index = options.ignore_index, .weight = options.weight})
        .to(logp.dtype());
  }
  return record(Op::nll_loss, {logp, target},
                {{"reduction", std::string_view(options.reduction)}, {"ignore_index", options.ignore_index}});
}

Tensor cross_entropy(const Tensor& x, const Tensor& target, const ClassLossOptions& options) {
  const bool has_shares =
      x.defined() && target.defined() && x.rank() >= 2 && is_float(target.dtype()) && target.shape() == x.shape();
  if (has_shares || options.weight.defined()) {
    check_defined("cross_entropy", x);
    const CalledAs called("cross_entropy");
    FJ_CHECK(options.label_smoothing >= 0 && options.label_smoothing <= 1,
             "cross_entropy: label_smoothing is {}, it must be from 0 to 1", options.label_smoothing);
    const Tensor loss = has_shares ? of_probabilities(wide(x), target, options)
                                   : weighted("cross_entropy", log_softmax(wide(x), 1), target, options);
    return thread_state().autocast ? loss : loss.to(x.dtype());  // a loss stays wide there
  }
  return record(Op::cross_entropy, {x, target},
                {{"reduction", std::string_view(options.reduction)},
                 {"ignore_index", options.ignore_index},
                 {"label_smoothing", options.label_smoothing}});
}

}  // namespace fusejit
