// Layers of matrices: Linear, Embedding, MultiheadAttention.
#pragma once

#include <optional>
#include <vector>

#include "fusejit/module.h"
#include "fusejit/ops.h"

namespace fusejit::nn {

// x: [...,in] -> [...,out], as linear. Parameters: weight [out,in], bias [out].
class Linear : public ModuleOf<Linear> {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features, bool bias = true);
  Tensor forward(const Tensor& x) const override;
  Parameter weight() const { return weight_; }

 private:
  Parameter weight_;
  std::vector<Parameter> bias_;
};

struct EmbeddingOptions {
  std::optional<std::int64_t> padding_idx = {};  // this row is 0 at first and not trained; negative: from the end
};
// x: [...] ints -> [...,embedding_dim], row x of the table; a number that is no row gives NaN. Parameter: weight
// [num_embeddings,embedding_dim], normal with mean 0 and deviation 1 at first.
//   fj::nn::Embedding words(1000, 16, {.padding_idx = 0});
//   fj::Tensor rows = words(fj::tensor<std::int64_t>({3, 1, 4}));  // [3,16]
class Embedding : public ModuleOf<Embedding> {
 public:
  Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim, EmbeddingOptions options = {});
  Tensor forward(const Tensor& x) const override;
  Parameter weight() const { return weight_; }

 private:
  std::optional<std::int64_t> padding_idx_;
  Parameter weight_;
};

struct MultiheadAttentionOptions {
  double dropout = 0;  // of the attention's weights, in training
  bool bias = true;
};
// What is not attended to.
struct AttentionMasks {
  Tensor attn_mask = {};         // [L,S] or [N*num_heads,L,S]; bool: true is not attended to, float: is added
  Tensor key_padding_mask = {};  // [N,S], likewise: true for keys that no query attends to
};
// softmax(q*k^T/sqrt(d))*v for each of num_heads slices, d = embed_dim/num_heads wide, of projections of query, key and
// value; "Attention Is All You Need", Vaswani et al. 2017. query: [N,L,embed_dim], key and value: [N,S,embed_dim] ->
// [N,L,embed_dim]: batches come first, as with PyTorch's batch_first. The attention's weights are not returned, and all
// three have embed_dim features. A row that may attend to nothing is NaN. Parameters: in_proj_weight
// [3*embed_dim,embed_dim] (query, key, value; Xavier-uniform at first), in_proj_bias, out_proj.weight, out_proj.bias.
//   fj::nn::MultiheadAttention attention(32, 4);
//   fj::Tensor y = attention(fj::ones({2, 10, 32}));                              // to itself
//   fj::Tensor z = attention(y, fj::ones({2, 5, 32}), fj::ones({2, 5, 32}), {});  // [2,10,32]
class MultiheadAttention : public ModuleOf<MultiheadAttention> {
 public:
  MultiheadAttention(std::int64_t embed_dim, std::int64_t num_heads, MultiheadAttentionOptions options = {});
  Tensor forward(const Tensor& x) const override;
  using Module::operator();
  Tensor operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                    const AttentionMasks& masks = {}) const;

 private:
  Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionMasks& masks) const;
  std::int64_t embed_dim_, num_heads_;
  double dropout_;
  Parameter in_weight_;
  std::vector<Parameter> in_bias_;  // one or none
  Linear out_;
};

}  // namespace fusejit::nn
