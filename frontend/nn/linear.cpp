#include "fusejit/nn/linear.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/nn/initial_values.h"
#include "frontend/nn/shapes_only.h"
#include "frontend/ops/random.h"
#include "frontend/record.h"
#include "fusejit/nn/init.h"
#include "ir/base/check.h"

namespace fusejit::nn {
Linear::Linear(std::int64_t in_features, std::int64_t out_features, bool bias)
    : weight_(parameter("weight", uniform_within(in_features, {out_features, in_features}))) {
  if (bias) bias_.push_back(parameter("bias", uniform_within(in_features, {out_features})));
}

Tensor Linear::forward(const Tensor& x) const { return linear(x, weight_.value(), or_none(bias_, 0)); }

// ---- Embedding ------------------------------------------------------------------------------------------------------

namespace {

Tensor initial_rows(std::int64_t count, std::int64_t width, std::optional<std::int64_t> zero) {
  FJ_CHECK(count >= 1 && width >= 1, "Embedding: a table of [{},{}] must have at least one element", count, width);
  FJ_CHECK(!zero || (*zero >= -count && *zero < count), "Embedding: padding_idx {} is no row of {}", zero.value_or(0),
           count);
  const Shape shape{count, width};
  if (ShapesOnly::is_on()) return without_value({f32, shape, Layout::standard});
  std::vector<float> values = normal_values(shape.elements(), 1);
  if (zero) std::fill_n(values.begin() + (*zero < 0 ? *zero + count : *zero) * width, width, 0.f);
  return from_host(values, shape);
}

}  // namespace

Embedding::Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim, EmbeddingOptions options)
    : padding_idx_(options.padding_idx),
      weight_(parameter("weight", initial_rows(num_embeddings, embedding_dim, options.padding_idx))) {
  if (padding_idx_ && *padding_idx_ < 0) *padding_idx_ += num_embeddings;
}

Tensor Embedding::forward(const Tensor& x) const {
  FJ_CHECK(x.defined() && is_int(x.dtype()), "Embedding: x must hold ints, numbers of rows (x: {})", text(x));
  const Tensor table = weight_.value();
  const std::int64_t count = x.elements(), width = table.shape()[1];
  const Tensor index = expand(reshape(x, {count, 1}), {count, width});
  Tensor rows = gather(table, 0, index);
  if (padding_idx_) rows = where(eq(index, *padding_idx_), rows.detach(), rows);
  Dims shape(x.shape().begin(), x.shape().end());
  shape.push_back(width);
  return reshape(rows, shape);
}

// ---- MultiheadAttention ---------------------------------------------------------------------------------------------

namespace {

std::int64_t checked_features(std::int64_t embed_dim, std::int64_t num_heads) {
  FJ_CHECK(embed_dim >= 1 && num_heads >= 1 && embed_dim % num_heads == 0,
           "MultiheadAttention: {} features do not divide into {} heads", embed_dim, num_heads);
  return embed_dim;
}

// scores: [N,heads,L,S].
Tensor masked(const Tensor& scores, const Tensor& mask) {
  if (mask.dtype() == boolean) return where(mask, -std::numeric_limits<double>::infinity(), scores);
  return scores + mask;
}

void check_mask(const char* what, const Tensor& mask, const std::vector<Shape>& allowed) {
  bool fits = mask.dtype() == boolean || is_float(mask.dtype());
  fits = fits && std::find(allowed.begin(), allowed.end(), mask.shape()) != allowed.end();
  FJ_CHECK(fits, "MultiheadAttention: {} must be bool or float {} ({}: {})", what,
           allowed.size() == 1 ? allowed[0].str() : allowed[0].str() + " or " + allowed[1].str(), what, text(mask));
}

}  // namespace

MultiheadAttention::MultiheadAttention(std::int64_t embed_dim, std::int64_t num_heads,
                                       MultiheadAttentionOptions options)
    : embed_dim_(checked_features(embed_dim, num_heads)),
      num_heads_(num_heads),
      dropout_(options.dropout),
      in_weight_(parameter("in_proj_weight", filled({3 * embed_dim, embed_dim}, 0))),
      out_(embed_dim, embed_dim, options.bias) {
  FJ_CHECK(dropout_ >= 0 && dropout_ <= 1, "MultiheadAttention: dropout is {}, it must lie between 0 and 1", dropout_);
  init::xavier_uniform_(in_weight_);
  if (options.bias) in_bias_.push_back(parameter("in_proj_bias", filled({3 * embed_dim}, 0)));
  add("out_proj", out_);
  for (const auto& [name, value] : out_.named_parameters()) {
    if (name == "bias") init::zeros_(value);
  }
}

Tensor MultiheadAttention::attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const AttentionMasks& masks) const {
  const auto is_sequence = [&](const Tensor& t) { return t.defined() && t.rank() == 3 && t.size(2) == embed_dim_; };
  FJ_CHECK(is_sequence(query) && is_sequence(key) && is_sequence(value) && key.shape() == value.shape() &&
               key.size(0) == query.size(0),
           "MultiheadAttention: query must be [N,L,{}], key and value [N,S,{}] (query: {}, key: {}, value: {})",
           embed_dim_, embed_dim_, text(query), text(key), text(value));
  const std::int64_t images = query.size(0), rows = query.size(1), columns = key.size(1);
  const std::int64_t width = embed_dim_ / num_heads_;

  // Projected, as [N,heads,length,width]; one product where all three are one tensor.
  const Tensor weight = in_weight_.value(), bias = or_none(in_bias_, 0);
  const bool is_self = query.state() == key.state() && key.state() == value.state();
  const Tensor all = is_self ? linear(query, weight, bias) : Tensor();
  const auto heads = [&](const Tensor& x, std::int64_t part) {
    const std::int64_t first = part * embed_dim_, last = first + embed_dim_;
    const Tensor own =
        is_self ? slice(all, 2, first, last)
                : linear(x, slice(weight, 0, first, last), bias.defined() ? slice(bias, 0, first, last) : Tensor());
    return permute(reshape(own, {images, x.size(1), num_heads_, width}), {0, 2, 1, 3});
  };
  const Tensor q = heads(query, 0) * (1 / std::sqrt(static_cast<double>(width)));
  const Tensor k = heads(key, 1), v = heads(value, 2);
  Tensor scores = matmul(q, transpose(k, -2, -1));
  if (masks.attn_mask.defined()) {
    const Shape own{images * num_heads_, rows, columns};
    check_mask("attn_mask", masks.attn_mask, {{rows, columns}, own});
    const bool is_own = masks.attn_mask.rank() == 3;
    scores = masked(scores, is_own ? reshape(masks.attn_mask, {images, num_heads_, rows, columns}) : masks.attn_mask);
  }
  if (masks.key_padding_mask.defined()) {
    check_mask("key_padding_mask", masks.key_padding_mask, {{images, columns}});
    scores = masked(scores, reshape(masks.key_padding_mask, {images, 1, 1, columns}));
  }
  Tensor weights = softmax(scores, -1);
  if (is_training() && dropout_ > 0) weights = dropout(weights, dropout_);
  return out_(reshape(permute(matmul(weights, v), {0, 2, 1, 3}), {images, rows, embed_dim_}));
}

Tensor MultiheadAttention::forward(const Tensor& x) const { return attention(x, x, x, {}); }
Tensor MultiheadAttention::operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                      const AttentionMasks& masks) const {
  return as_call([&] { return attention(query, key, value, masks); });
}

}  // namespace fusejit::nn
