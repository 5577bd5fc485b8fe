#include "tests/support/composed_cases.h"

#include <cstring>
#include <limits>

#include "frontend/io/npz.h"
#include "frontend/state.h"
#include "fusejit/composed.h"
#include "fusejit/grad.h"

namespace fusejit::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

ComposedFunction einsum_of(std::string equation) {
  return [equation = std::move(equation)](const Tensors& in) { return Tensors{einsum(equation, in)}; };
}

template <class F>
ComposedFunction one(F f) {
  return [f](const Tensors& in) { return Tensors{f(in)}; };
}

Tensors both(const Sorted& sorted) { return {sorted.values, sorted.indices}; }

}  // namespace

const std::map<std::string, ComposedFunction>& composed_cases() {
  using In = const Tensors&;
  static const std::map<std::string, ComposedFunction> all{
      {"stack_first", one([](In in) { return stack(in); })},
      {"stack_last", one([](In in) { return stack(in, -1); })},
      {"stack_kinds", one([](In in) { return stack(in, 1); })},
      {"split", [](In in) { return split(in[0], 3); }},
      {"split_sizes",
       [](In in) {
         return split(in[0], {1, 0, 3}, -1);
       }},
      {"chunk", [](In in) { return chunk(in[0], 3); }},
      {"unbind", [](In in) { return unbind(in[0], 1); }},
      {"diagonal", one([](In in) { return diagonal(in[0]); })},
      {"diagonal_above", one([](In in) { return diagonal(in[0], 1, -1, 0); })},
      {"diagonal_below", one([](In in) { return diagonal(in[0], -1, 1, 2); })},
      {"tril", one([](In in) { return tril(in[0]); })},
      {"tril_below", one([](In in) { return tril(in[0], -1); })},
      {"triu", one([](In in) { return triu(in[0], 2); })},
      {"triu_whole", one([](In in) { return triu(in[0]); })},
      {"index_select", one([](In in) { return index_select(in[0], -1, in[1]); })},
      {"take", one([](In in) { return take(in[0], in[1]); })},
      {"masked_fill", one([](In in) { return masked_fill(in[0], in[1], -3); })},
      {"scatter_add", one([](In in) { return scatter_add(in[0], 1, in[1], in[2]); })},
      {"sort", [](In in) { return both(sort(in[0])); }},
      {"sort_equal", [](In in) { return both(sort(in[0], 0, true)); }},
      {"sort_special", [](In in) { return both(sort(in[0])); }},
      {"sort_special_descending", [](In in) { return both(sort(in[0], -1, true)); }},
      {"argsort", one([](In in) { return argsort(in[0], 1); })},
      {"argsort_bool", one([](In in) { return argsort(in[0]); })},
      {"topk", [](In in) { return both(topk(in[0], 2)); }},
      {"topk_smallest", [](In in) { return both(topk(in[0], 3, 1, false)); }},
      {"norm", one([](In in) { return norm(in[0]); })},
      {"norm_rows", one([](In in) { return norm(in[0], 2, {1}, true); })},
      {"norm_1", one([](In in) {
         return norm(in[0], 1, {0, -1});
       })},
      {"norm_inf", one([](In in) { return norm(in[0], kInf, {-1}); })},
      {"std", one([](In in) { return fusejit::std(in[0]); })},
      {"std_rows", one([](In in) { return fusejit::std(in[0], {1}, 0, true); })},
      {"logsumexp", one([](In in) {
         return logsumexp(in[0] * 100, {0, 2});
       })},
      {"logsumexp_keepdim", one([](In in) { return logsumexp(in[0], {-1}, true); })},
      {"cumsum", one([](In in) { return cumsum(in[0], 0); })},
      {"cumsum_middle", one([](In in) { return cumsum(in[0], -2); })},
      {"cumsum_whole", one([](In in) { return cumsum(in[0], 1); })},
      {"cumsum_bool", one([](In in) { return cumsum(in[0], 2); })},
      {"outer", one([](In in) { return outer(in[0], in[1]); })},
      {"dot", one([](In in) { return dot(in[0], in[1]); })},
      {"einsum_matrix", einsum_of("ij,kj->ik")},
      {"einsum_batch", einsum_of("bij,bjk->bik")},
      {"einsum_turned", einsum_of("bij,bjk->kib")},
      {"einsum_two_sums", einsum_of("bij, bij -> i")},
      {"einsum_vector", einsum_of("bij,j->bi")},
      {"einsum_outer", einsum_of("i,j")},
      {"einsum_alone", einsum_of("bij,k->ik")},
      {"einsum_trace", einsum_of("ii")},
      {"einsum_diagonal", einsum_of("iji->ij")},
      {"einsum_permute", einsum_of("ba")},
      {"einsum_ellipsis", einsum_of("...ij,...jk->...ik")},
      {"einsum_ellipsis_more", einsum_of("i...,...")},
      {"einsum_ellipsis_summed", einsum_of("...i->i")},
      {"einsum_repeats", einsum_of("ij,ij->ij")},
      {"einsum_repeats_summed", einsum_of("ij,kj->ik")},
      {"einsum_three", einsum_of("ij,bjk,kl->bil")},
      {"einsum_capitals", einsum_of("bA,Ac")},
      {"einsum_whole", einsum_of("ij,kj->ik")},
      {"conv1d", one([](In in) { return conv1d(in[0], in[1], in[2]); })},
      {"conv1d_stride",
       one([](In in) { return conv1d(in[0], in[1], {.stride = 2, .padding = 2, .dilation = 3, .groups = 2}); })},
      {"conv1d_same", one([](In in) { return conv1d(in[0], in[1], {.padding = "same"}); })},
      {"pixel_shuffle", one([](In in) { return pixel_shuffle(in[0], 2); })},
      {"pixel_shuffle_one", one([](In in) { return pixel_shuffle(in[0], 3); })},
      {"pixel_unshuffle", one([](In in) { return pixel_unshuffle(in[0], 2); })},
      {"interpolate_nearest", one([](In in) { return interpolate(in[0], {.scale_factor = 2}); })},
      {"interpolate_size", one([](In in) { return interpolate(in[0], {.size = Pair(7, 3), .mode = "bilinear"}); })},
      {"interpolate_corners", one([](In in) {
         return interpolate(in[0], {.scale_factor = Scale(1.6, 2.5), .mode = "bilinear", .align_corners = true});
       })},
      {"interpolate_half",
       one([](In in) { return interpolate(in[0], {.scale_factor = Scale(0.5, 1.2), .mode = "bilinear"}); })},
      {"interpolate_odd", one([](In in) { return interpolate(in[0], {.scale_factor = 0.5, .mode = "bilinear"}); })},
      {"interpolate_factor",
       one([](In in) { return interpolate(in[0], {.scale_factor = Scale(1.3, 1.7), .mode = "bilinear"}); })},
      {"interpolate_factor_nearest", one([](In in) { return interpolate(in[0], {.scale_factor = Scale(1.3, 1.7)}); })},
      {"interpolate_area", one([](In in) { return interpolate(in[0], {.scale_factor = 0.7, .mode = "area"}); })},
      {"at", one([](In in) { return in[0][-1]; })},
      {"at_twice", one([](In in) { return in[0][1][2]; })},
      {"max_ceil", one([](In in) { return max_pool2d(in[0], 3, {.stride = 2, .ceil_mode = true}); })},
      {"max_ceil_odd",
       one([](In in) { return max_pool2d(in[0], Pair(2, 3), {.stride = Pair(3, 4), .ceil_mode = true}); })},
      {"max_ceil_pads",
       one([](In in) { return max_pool2d(in[0], 3, {.stride = 2, .padding = 1, .ceil_mode = true}); })},
      {"max_ceil_dilated",
       one([](In in) { return max_pool2d(in[0], 2, {.stride = 3, .padding = 1, .dilation = 2, .ceil_mode = true}); })},
      {"max_ceil_none",
       one([](In in) { return max_pool2d(in[0], 2, {.stride = 3, .padding = 1, .ceil_mode = true}); })},
      {"max_ceil_larger", one([](In in) { return max_pool2d(in[0], 4, {.stride = 3, .ceil_mode = true}); })},
      {"average_ceil", one([](In in) { return avg_pool2d(in[0], 3, {.stride = 2, .ceil_mode = true}); })},
      {"average_ceil_odd",
       one([](In in) { return avg_pool2d(in[0], Pair(2, 3), {.stride = Pair(3, 4), .ceil_mode = true}); })},
      {"average_ceil_pads",
       one([](In in) { return avg_pool2d(in[0], 3, {.stride = 2, .padding = 1, .ceil_mode = true}); })},
      {"average_ceil_pads_odd", one([](In in) {
         return avg_pool2d(in[0], 4, {.stride = Pair(3, 2), .padding = {2, 1}, .ceil_mode = true});
       })},
      {"average_ceil_inside", one([](In in) {
         return avg_pool2d(in[0], 3, {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false});
       })},
      {"average_ceil_none",
       one([](In in) { return avg_pool2d(in[0], 2, {.stride = 3, .padding = 1, .ceil_mode = true}); })},
      {"average_ceil_larger",
       one([](In in) { return avg_pool2d(in[0], 4, {.stride = 3, .padding = 1, .ceil_mode = true}); })},
      {"adaptive_max", one([](In in) { return adaptive_max_pool2d(in[0], Pair(3, 2)); })},
      {"adaptive_max_one", one([](In in) { return adaptive_max_pool2d(in[0], 1); })},
      {"grid_sample", one([](In in) { return grid_sample(in[0], in[1]); })},
      {"grid_sample_corners", one([](In in) { return grid_sample(in[0], in[1], {.align_corners = true}); })},
      {"grid_sample_border", one([](In in) { return grid_sample(in[0], in[1], {.padding_mode = "border"}); })},
      {"grid_sample_nearest", one([](In in) { return grid_sample(in[0], in[1], {.mode = "nearest"}); })},
      {"edge_stack_alone", one([](In in) { return stack(in, -2); })},
      {"edge_stack_scalars", one([](In in) { return stack(in); })},
      {"edge_split_beyond", [](In in) { return split(in[0], 9, -1); }},
      {"edge_chunk_beyond", [](In in) { return chunk(in[0], 9, -2); }},
      {"edge_unbind_one", [](In in) { return unbind(in[0], -1); }},
      {"edge_diagonal_row", one([](In in) { return diagonal(in[0], 2, -2, -1); })},
      {"edge_tril_row", one([](In in) { return tril(in[0], 1); })},
      {"edge_triu_nan", one([](In in) { return triu(in[0], 1); })},
      {"edge_index_select_none", one([](In in) { return index_select(in[0], 1, in[1]); })},
      {"edge_index_select_one", one([](In in) { return index_select(in[0], -2, in[1]); })},
      {"edge_take_none", one([](In in) { return take(in[0], in[1]); })},
      {"edge_take_ends", one([](In in) { return take(in[0], in[1]); })},
      {"edge_masked_fill_scalar", one([](In in) { return masked_fill(in[0], in[1], kInf); })},
      {"edge_scatter_add_none", one([](In in) { return scatter_add(in[0], 0, in[1], in[2]); })},
      {"edge_scatter_add_same", one([](In in) { return scatter_add(in[0], -1, in[1], in[2]); })},
      {"edge_sort_one", [](In in) { return both(sort(in[0], 1)); }},
      {"edge_sort_zeros", [](In in) { return both(sort(in[0])); }},
      {"edge_sort_zeros_descending", [](In in) { return both(sort(in[0], -1, true)); }},
      {"edge_sort_none", [](In in) { return both(sort(in[0], 0)); }},
      {"edge_argsort_ties", one([](In in) { return argsort(in[0], -2, true); })},
      {"edge_topk_whole", [](In in) { return both(topk(in[0], 3, -2)); }},
      {"edge_topk_special", one([](In in) { return topk(in[0], 3).values; })},
      {"edge_topk_special_smallest", one([](In in) { return topk(in[0], 5, -1, false).values; })},
      {"edge_topk_one", [](In in) { return both(topk(in[0], 1)); }},
      {"edge_norm_none", one([](In in) { return norm(in[0], 2, {0}); })},
      {"edge_norm_special", one([](In in) { return norm(in[0], 2, {0}); })},
      {"edge_norm_inf_nan", one([](In in) { return norm(in[0].detach(), kInf); })},
      {"edge_norm_inf_ties", one([](In in) { return norm(in[0], kInf, {0}); })},
      {"edge_norm_1_zero", one([](In in) { return norm(in[0], 1, {-1}); })},
      {"edge_std_one", one([](In in) { return fusejit::std(in[0]); })},
      {"edge_logsumexp_special", one([](In in) { return logsumexp(in[0], {0}); })},
      {"edge_logsumexp_nan", one([](In in) { return logsumexp(in[0], {0}); })},
      {"edge_logsumexp_one", one([](In in) { return logsumexp(in[0], {-2}); })},
      {"edge_cumsum_one", one([](In in) { return cumsum(in[0], 1); })},
      {"edge_cumsum_special", one([](In in) { return cumsum(in[0], 0); })},
      {"edge_cumsum_none", one([](In in) { return cumsum(in[0], -1); })},
      {"edge_dot_none", one([](In in) { return dot(in[0], in[1]); })},
      {"edge_outer_one", one([](In in) { return outer(in[0], in[1]); })},
      {"edge_einsum_scalars", einsum_of(",->")},
      {"edge_einsum_none", einsum_of("ij,jk->ik")},
      {"edge_einsum_everything", einsum_of("bij->")},
      {"edge_conv1d_one", one([](In in) { return conv1d(in[0], in[1], {.padding = 1}); })},
      {"edge_conv1d_stride", one([](In in) { return conv1d(in[0], in[1], {.stride = 11}); })},
      {"edge_pixel_shuffle_alone", one([](In in) { return pixel_shuffle(in[0], 1); })},
      {"edge_interpolate_of_one",
       one([](In in) { return interpolate(in[0], {.size = Pair(3, 2), .mode = "bilinear"}); })},
      {"edge_interpolate_to_one",
       one([](In in) { return interpolate(in[0], {.size = 1, .mode = "bilinear", .align_corners = true}); })},
      {"edge_interpolate_factor",
       one([](In in) { return interpolate(in[0], {.scale_factor = Scale(1.3, 1.5), .mode = "bilinear"}); })},
      {"edge_interpolate_area_larger",
       one([](In in) { return interpolate(in[0], {.size = Pair(7, 9), .mode = "area"}); })},
      {"edge_interpolate_same", one([](In in) { return interpolate(in[0], {.scale_factor = 1, .mode = "bilinear"}); })},
      {"edge_grid_sample_cell", one([](In in) { return grid_sample(in[0], in[1]); })},
      {"edge_grid_sample_cell_corners",
       one([](In in) { return grid_sample(in[0], in[1], {.padding_mode = "border", .align_corners = true}); })},
      {"edge_grid_sample_points", one([](In in) { return grid_sample(in[0], in[1], {.align_corners = true}); })},
      {"edge_grid_sample_points_nearest",
       one([](In in) { return grid_sample(in[0], in[1], {.mode = "nearest", .padding_mode = "border"}); })},
      {"arange", one([](In) { return arange(-3, 8, 4); })},
      {"arange_down", one([](In) { return arange(2.5, -1, -0.7); })},
      {"linspace", one([](In) { return linspace(-1, 2.2, 9); })},
      {"linspace_one", one([](In) { return linspace(3, 5, 1); })},
      {"linspace_whole", one([](In) { return linspace(0, 10, 7, i64); })},
  };
  return all;
}

const std::map<std::string, Tensor>& recorded_composed() {
  static const std::map<std::string, Tensor> arrays = [] {
    std::map<std::string, Tensor> read;
    const std::string path = FUSEJIT_SOURCE_DIR "/tests/reference/composed.npz";
    for (const io::NamedArray& a : io::read_npz(path, [](std::string_view name) { return name != "torch_version"; })) {
      read[a.name] = from_host(a.bytes.data(), a.shape, a.dtype);
    }
    return read;
  }();
  return arrays;
}

Tensors composed_arrays(const std::string& name, const std::string& what) {
  Tensors found;
  for (std::size_t i = 0; i < 8; ++i) {
    const auto at = recorded_composed().find(name + "." + what + std::to_string(i));
    if (at == recorded_composed().end()) continue;
    found.resize(i + 1);
    found[i] = at->second;
  }
  return found;
}

Tensor in_form(const Tensor& x, DType dtype, Layout layout) {
  Tensor y = is_float(x.dtype()) ? x.to(dtype) : x;
  if (layout == Layout::standard || y.rank() != 4 || y.elements() == 0) return y.eval();
  const Tensor rows = permute(y, {0, 2, 3, 1}).eval();
  const runtime::Buffer memory = runtime::Buffer::allocate({y.dtype(), y.shape(), layout});
  const runtime::Buffer from = attachment(value_of(rows).get())->buffer;
  std::memcpy(memory.data(), from.data(), static_cast<std::size_t>(memory.bytes()));
  return tensor_of(memory);
}

Tensors WithGradients::all() const {
  Tensors both = results;
  both.insert(both.end(), gradients.begin(), gradients.end());
  return both;
}

WithGradients with_gradients(const std::string& name, Tensors inputs) {
  Tensors wanted, differentiable, cotangents;
  for (Tensor& x : inputs)
    if (is_float(x.dtype())) wanted.push_back(x.requires_grad());
  WithGradients made{composed_cases().at(name)(inputs), {}};
  const Tensors recorded = composed_arrays(name, "d_out");
  for (std::size_t i = 0; i < made.results.size(); ++i) {
    const Tensor& y = made.results[i];
    if (!y.needs_grad()) continue;
    differentiable.push_back(y);
    cotangents.push_back(recorded.at(i).to(y.dtype()).eval());
  }
  if (!differentiable.empty()) made.gradients = grad(differentiable, cotangents, wanted);
  return made;
}

}  // namespace fusejit::test
