// Blocks of random networks that are made of composed functions and of what layers record: the front end records them.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "frontend/nn/padding.h"
#include "frontend/state.h"
#include "fusejit/composed.h"
#include "ir/base/check.h"
#include "ir/base/scalar.h"
#include "tests/random/generate/dims.h"
#include "tests/random/generate/network_layers.h"

namespace fusejit::testing {

using namespace ir;

namespace {

using In = const std::vector<Tensor>&;

// Names of parameters are letters and digits: the bits of the f64.
constexpr std::string_view kNumber = "_is_";

std::string name_of(double number) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(bits));
  return "is_" + std::string(text);
}

Value constant_of(const runtime::Buffer& buffer) {
  const Type& type = buffer.type();
  std::vector<double> data;
  for (std::int64_t i = 0; i < type.elements(); ++i)
    data.push_back(load_element(buffer.data(), type.dtype, i).as_double());
  return build(Op::constant, {},
               {{"shape", type.shape.dims()}, {"dtype", type.dtype}, {"data", std::span<const double>(data)}});
}

Value bordered(Layers& l, const Value& x, const Block& b) {
  static constexpr const char* kEdges[] = {"reflect", "replicate", "circular"};
  const std::int64_t reach = b.dilation * (b.kernel - 1), low = reach / 2;
  const Value y = l.recorded({x}, [&](In in) {
    return nn::padded("Conv2d", in[0], {low, low, reach - low, reach - low}, kEdges[(b.width - 1) % 3]);
  });
  return l.convolution(y, b.channels, b, false);
}

Value subpixel(Layers& l, const Value& x, const Block& b) {
  const int r = b.stride + 1;
  if (!b.gated) {
    Block wide = b;
    wide.stride = 1;
    const Value y = l.convolution(x, static_cast<std::int64_t>(b.channels) * r * r, wide);
    return l.recorded({y}, [r](In in) { return pixel_shuffle(in[0], r); });
  }
  const Shape& s = x.type().shape;
  FJ_CHECK(s[2] >= r && s[3] >= r, "the image is smaller than a square");
  const Value y = l.recorded(
      {x}, [&](In in) { return pixel_unshuffle(slice(slice(in[0], 2, 0, s[2] / r * r), 3, 0, s[3] / r * r), r); });
  return l.pointwise(y, b.channels, 1, b.bias);
}

// Points near those of the image itself, moved by what two channels say.
Value sampled(Layers& l, const Value& x, const Block& b) {
  const Value moved = l.pointwise(x, 2, b.stride);
  return l.recorded({x, moved}, [&](In in) {
    const Tensor offsets = tanh(permute(in[1], {0, 2, 3, 1}));  // [N,P,Q,2]
    const std::int64_t p = offsets.size(1), q = offsets.size(2);
    const auto line = [](std::int64_t n) { return (arange(0, n).to(f32) + 0.5) * (2.0 / static_cast<double>(n)) - 1; };
    const Tensor whole = stack({expand(reshape(line(q), {1, q}), {p, q}), expand(reshape(line(p), {p, 1}), {p, q})}, 2);
    const Tensor grid = whole.to(in[0].dtype()) + offsets * 0.4;
    return grid_sample(in[0], grid, {.padding_mode = b.gated ? "border" : "zeros", .align_corners = b.bias});
  });
}

Value sequence(Layers& l, const Value& x, const Block& b) {
  const Shape s = x.type().shape;
  FJ_CHECK(s[1] % b.groups == 0, "channels are not in {} groups", b.groups);
  const Value w = l.fresh("w", {b.channels, s[1] / b.groups, b.kernel});
  return l.recorded({x, w}, [&](In in) {
    const Tensor y = conv1d(flatten(in[0], 2), in[1], {.padding = "same", .dilation = b.dilation, .groups = b.groups});
    return reshape(y, {s[0], b.channels, s[2], s[3]});
  });
}

Value gram(Layers& l, const Value& x, const Block& b) {
  const double pixels = static_cast<double>(x.type().shape[2] * x.type().shape[3]);
  const Value key = b.gated ? l.pointwise(x, x.type().shape[1]) : x;
  return l.recorded({x, key}, [&](In in) {
    const Tensor share = softmax(einsum("nchw,ndhw->ncd", {in[0], in[1]}) * (1 / pixels), 2);
    return in[0] + einsum("ncd,ndhw->nchw", {share, in[1]});
  });
}

Value conditioned(Layers& l, const Value& x, const Block& b) {
  const std::int64_t images = x.type().shape[0], channels = x.type().shape[1], rows = 2 + b.width;
  const Value labels = l.fresh(("class_of_" + std::to_string(rows)).c_str(), {images}, DType::i64);
  const Value table = l.fresh("table", {rows, 2 * channels});
  return l.recorded({x, table, labels}, [&](In in) {
    const std::vector<Tensor> parts = chunk(reshape(index_select(in[1], 0, in[2]), {images, 2 * channels, 1, 1}), 2, 1);
    return in[0] * (1 + parts[0]) + parts[1];
  });
}

}  // namespace

std::optional<double> number_in_name(const std::string& name) {
  const std::size_t at = name.find(kNumber);
  if (at == std::string::npos) return std::nullopt;
  const std::uint64_t bits = std::strtoull(name.c_str() + at + kNumber.size(), nullptr, 16);
  double number = 0;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

Value Layers::recorded(const std::vector<Value>& operands, const Recorded& f) {
  std::vector<Tensor> tensors;
  std::map<const Node*, Value> done;
  for (const Value& v : operands) {
    tensors.push_back(tensor_of(v, false, 0, std::nullopt));
    done.emplace(v.get(), v);
  }
  return without_leaves(value_of(f(tensors)), done);
}

Value Layers::without_leaves(const Value& v, std::map<const Node*, Value>& done) {
  if (const auto found = done.find(v.get()); found != done.end()) return found->second;
  Value made = v;
  if (v->op == Op::parameter) {
    FJ_ASSERT(evaluated(v.get()), "a recorded function reads a tensor that it was not given");
    const Attachment& leaf = *attachment(v.get());
    made =
        leaf.number ? fresh(name_of(leaf.number->as_double()).c_str(), {}, v.type().dtype) : constant_of(leaf.buffer);
  } else {
    std::vector<Operand> operands = v->operands;
    for (Operand& o : operands)
      if (o.value) o.value = without_leaves(o.value, done);
    made = rebuild(*v, operands);
  }
  done.emplace(v.get(), made);
  return made;
}

Value composed_up(Layers& l, const Value& y, const Block& b, const Dims& size) {
  const Shape& s = y.type().shape;
  if (b.up == Up::shuffled) {  // of so many cells a square that the image fits
    const std::int64_t r = std::max((size[0] + s[2] - 1) / s[2], (size[1] + s[3] - 1) / s[3]);
    const Value wide = l.pointwise(y, s[1] * r * r);
    return l.recorded({wide},
                      [&](In in) { return slice(slice(pixel_shuffle(in[0], r), 2, 0, size[0]), 3, 0, size[1]); });
  }
  return l.recorded({y}, [&](In in) {
    if (b.up == Up::area) return interpolate(in[0], {.size = Pair(size[0], size[1]), .mode = "area"});
    const auto factor = [&](int axis) {
      return (static_cast<double>(size[static_cast<std::size_t>(axis)]) + 0.5) / static_cast<double>(s[axis + 2]);
    };
    return interpolate(
        in[0], {.scale_factor = Scale(factor(0), factor(1)), .mode = b.up == Up::factor ? "bilinear" : "nearest"});
  });
}

Value composed_block(Layers& l, const Value& x, const Block& b) {
  switch (b.kind) {
    case BlockKind::bordered:
      return bordered(l, x, b);
    case BlockKind::subpixel:
      return subpixel(l, x, b);
    case BlockKind::sampled:
      return sampled(l, x, b);
    case BlockKind::sequence:
      return sequence(l, x, b);
    case BlockKind::scanned:
      return l.recorded({x}, [&](In in) { return cumsum(in[0], b.width) / static_cast<double>(in[0].size(b.width)); });
    case BlockKind::strongest:
      return l.recorded(
          {x}, [&](In in) { return topk(in[0], std::max<std::int64_t>(1, in[0].size(1) / 2), 1, !b.gated).values; });
    case BlockKind::gram:
      return gram(l, x, b);
    case BlockKind::conditioned:
      return conditioned(l, x, b);
    default:
      return pieces_block(l, x, b);
  }
}

}  // namespace fusejit::testing
