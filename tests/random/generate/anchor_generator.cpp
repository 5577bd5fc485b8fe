// Anchors with what may stand in front of them and follow them, as texts.
#include <fmt/format.h>

#include "tests/random/generate/schedule_generator.h"

namespace fusejit::testing {

namespace {

// What follows an anchor whose result is %0 of `type`: a bias, a residual, a relu, sums over everything but channels.
std::string finish(Random& random, const std::string& dtype, const std::string& type, std::int64_t channels,
                   bool image) {
  std::string text, last = "%0";
  int next = 1;
  const auto op = [&](const std::string& call, const std::string& of_type) {
    text += fmt::format("  %{} = {} : {}\n", next, call, of_type);
    return "%" + std::to_string(next++);
  };
  if (image && random.chance(40)) last = op(fmt::format("bias_add({}, %bias)", last), type);
  if (random.chance(40)) last = op(fmt::format("add({}, %side)", last), type);
  if (random.chance(40)) last = op(fmt::format("relu({})", last), type);
  std::string results = last;
  if (image && random.chance(40)) {
    const std::string sum = op(fmt::format("sum({}) {{dim=[0,2,3]}}", last), fmt::format("{}[{}]", dtype, channels));
    results += ", " + sum;
  }
  return text + "  return " + results + "\n}";
}

std::string layout(Random& random) { return random.chance(60) ? ":nhwc" : ""; }

}  // namespace

namespace {

std::string anchor_alone(Random& random, const std::string& dtype) {
  const std::int64_t n = random.from(1, 3), groups = random.of<std::int64_t>({1, 1, 2, 3, 20}),
                     c = groups == 20 ? 1 : random.from(1, 9),
                     k = groups == 20 ? 1 : random.from(1, 40) / (groups > 1 ? 4 : 1) + 1, kernel = random.from(1, 4),
                     width = random.from(1, 3), stride = random.from(1, 2), dilation = random.from(1, 2),
                     top = random.from(0, 2), h = random.from(7, 10), w = random.from(7, 17);
  const bool alike = random.chance(50);  // on all sides, and along both axes
  const auto or_other = [&](std::int64_t same, std::int64_t low, std::int64_t high) {
    return alike ? same : random.from(low, high);
  };
  const std::int64_t along = or_other(stride, 1, 3), apart = or_other(dilation, 1, 3), left = or_other(top, 0, 2),
                     bottom = or_other(top, 0, 2), right = or_other(top, 0, 2);
  const std::int64_t p = (h + top + bottom - dilation * (kernel - 1) - 1) / stride + 1,
                     q = (w + left + right - apart * (width - 1) - 1) / along + 1;
  const std::string attrs = fmt::format("stride=[{},{}], padding=[{},{},{},{}], dilation=[{},{}], groups={}", stride,
                                        along, top, left, bottom, right, dilation, apart, groups);
  const std::string x = fmt::format("{}[{},{},{},{}]{}", dtype, n, c * groups, h, w, layout(random)),
                    y = fmt::format("{}[{},{},{},{}]{}", dtype, n, k * groups, p, q, layout(random)),
                    weight = fmt::format("{}[{},{},{},{}]{}", dtype, k * groups, c, kernel, width, layout(random));
  const auto graph = [&](const std::string& a, const std::string& b, const std::string& result, std::int64_t channels) {
    return fmt::format("graph @g(%a: {}, %b: {}, %side: {}, %bias: {}[{}]) {{\n", a, b, result, dtype, channels);
  };
  switch (random.from(0, 4)) {
    case 0:
      return graph(x, weight, y, k * groups) + fmt::format("  %0 = conv2d(%a, %b) {{{}}} : {}\n", attrs, y) +
             finish(random, dtype, y, k * groups, true);
    case 1:
      return graph(y, weight, x, c * groups) +
             fmt::format("  %0 = conv2d_input_grad(%a, %b) {{input_size=[{},{}], {}}} : {}\n", h, w, attrs, x) +
             finish(random, dtype, x, c * groups, true);
    case 2:
      return graph(x, y, weight, 1) +
             fmt::format("  %0 = conv2d_weight_grad(%a, %b) {{kernel_size=[{},{}], {}}} : {}\n", kernel, width, attrs,
                         weight) +
             finish(random, dtype, weight, 1, false);
    case 3: {
      const std::string a = fmt::format("{}[{},{},{}]", dtype, n, h, c), b = fmt::format("{}[{},{}]", dtype, k, c),
                        result = fmt::format("{}[{},{},{}]", dtype, n, h, k);
      return graph(a, b, result, 1) + fmt::format("  %0 = linear(%a, %b) : {}\n", result) +
             finish(random, dtype, result, 1, false);
    }
    default: {
      const std::string batch = random.chance(50) ? fmt::format("{},", n) : "";
      const std::string a = fmt::format("{}[{},{},{}]", dtype, n, h, c),
                        b = fmt::format("{}[{}{},{}]", dtype, batch, c, k),
                        result = fmt::format("{}[{},{},{}]", dtype, n, h, k);
      return graph(a, b, result, 1) + fmt::format("  %0 = matmul(%a, %b) : {}\n", result) +
             finish(random, dtype, result, 1, false);
    }
  }
}

// The first operand is computed; where it is read outside of its bounds it is 0 all the same.
std::string with_prologue(Random& random, const std::string& graph,
                          const std::vector<std::string>& choices = {"relu(%a)", "sub(1, %a)"}) {
  const std::size_t a = graph.find("%a: ") + 4, type_end = graph.find(", %b: "), anchor = graph.find("  %0 = "),
                    read = graph.find("(%a, ", anchor);
  const std::string& computed = random.of(choices);
  return graph.substr(0, anchor) + "  %computed = " + computed + " : " + graph.substr(a, type_end - a) + "\n" +
         graph.substr(anchor, read - anchor) + "(%computed, " + graph.substr(read + 5);
}

// A weight gradient's second operand is an image too, and may be computed.
std::string with_computed_image(Random& random, const std::string& graph) {
  const std::size_t b = graph.find(", %b) {kernel_size"), anchor = graph.find("  %0 = ");
  if (b == std::string::npos || !random.chance(30)) return graph;
  const std::size_t type = graph.find("%b: ") + 4, type_end = graph.find(", %side: ");
  return graph.substr(0, anchor) + "  %computed_b = relu(%b) : " + graph.substr(type, type_end - type) + "\n" +
         graph.substr(anchor, b - anchor) + ", %computed_b" + graph.substr(b + 4);
}

std::string around(Random& random, const std::string& graph) {
  return random.chance(50) ? with_casts_and_views(random, graph) : graph;
}

}  // namespace

std::string random_anchor(Random& random, const std::string& dtype) {
  const std::string graph = anchor_alone(random, dtype);
  return around(random, with_computed_image(random, random.chance(40) ? with_prologue(random, graph) : graph));
}

namespace {

std::string small_window(Random& random, const std::string& dtype) {
  const std::int64_t n = random.from(1, 4), c = random.from(1, 40), k = random.from(1, 70), h = random.from(2, 17),
                     w = random.from(2, 17), top = random.from(h < 3 ? 1 : 0, 2), left = random.from(w < 3 ? 1 : 0, 2),
                     bottom = random.from(0, 2), right = random.from(0, 2),
                     taps = random.of<std::int64_t>({3, 3, 2, 1}),
                     across = taps == 1 ? random.from(2, 3) : random.of<std::int64_t>({taps, taps, 3, 2, 1}),
                     down_by = taps == 3 && random.chance(35) ? 2 : 1, by = across == 3 && random.chance(35) ? 2 : 1;
  const std::string x = fmt::format("{}[{},{},{},{}]{}", dtype, n, c, h, w, layout(random)),
                    y = fmt::format("{}[{},{},{},{}]{}", dtype, n, k, (h + top + bottom - taps) / down_by + 1,
                                    (w + left + right - across) / by + 1, layout(random)),
                    weight = fmt::format("{}[{},{},{},{}]", dtype, k, c, taps, across),
                    attrs = fmt::format("stride=[{},{}], padding=[{},{},{},{}], dilation=[1,1], groups=1", down_by, by,
                                        top, left, bottom, right);
  const auto graph = [&](const std::string& a, const std::string& result, std::int64_t channels) {
    return fmt::format("graph @g(%a: {}, %b: {}, %side: {}, %bias: {}[{}]) {{\n", a, weight, result, dtype, channels);
  };
  if (random.chance(40))
    return fmt::format("graph @g(%a: {}, %b: {}, %side: {}, %bias: {}[1]) {{\n", x, y, weight, dtype) +
           fmt::format("  %0 = conv2d_weight_grad(%a, %b) {{kernel_size=[{},{}], {}}} : {}\n", taps, across, attrs,
                       weight) +
           finish(random, dtype, weight, 1, false);
  if (random.chance(50))
    return graph(x, y, k) + fmt::format("  %0 = conv2d(%a, %b) {{{}}} : {}\n", attrs, y) +
           finish(random, dtype, y, k, true);
  return graph(y, x, c) +
         fmt::format("  %0 = conv2d_input_grad(%a, %b) {{input_size=[{},{}], {}}} : {}\n", h, w, attrs, x) +
         finish(random, dtype, x, c, true);
}

}  // namespace

std::string random_small_window(Random& random, const std::string& dtype) {
  const std::string graph = small_window(random, dtype);
  const std::string computed = with_computed_image(random, random.chance(40) ? with_prologue(random, graph) : graph);
  return random.chance(30) ? with_casts_and_views(random, computed, Around::views_of_results) : computed;
}

namespace {

constexpr std::int64_t kMostProducts = 2'000'000;
const std::vector<std::int64_t> kManyChannels{3, 16, 20, 32, 48, 64, 96, 128, 256, 1024};

// A convolution, of one group or of as many as there are channels, or a gradient of it.
std::string convolution_of_many_channels(Random& random, const std::string& dtype) {
  const bool depthwise = random.chance(15);
  const std::int64_t n = random.from(1, 16), c = random.of(kManyChannels), k = depthwise ? c : random.of(kManyChannels),
                     of_group = depthwise ? 1 : c, r = random.of<std::int64_t>({1, 1, 3, 3, 7}),
                     s = random.chance(90) ? r : 1, stride = random.chance(70) ? 1 : 2, top = r / 2, left = s / 2,
                     h = random.from(r, 16), w = random.from(s, 16), p = (h + 2 * top - r) / stride + 1,
                     q = (w + 2 * left - s) / stride + 1;
  if (n * p * q * of_group * k * r * s > kMostProducts) return convolution_of_many_channels(random, dtype);
  const std::string attrs = fmt::format("stride=[{0},{0}], padding=[{1},{2},{1},{2}], dilation=[1,1], groups={3}",
                                        stride, top, left, c / of_group);
  const std::string layout = random.chance(20) ? "" : ":nhwc",
                    x = fmt::format("{}[{},{},{},{}]{}", dtype, n, c, h, w, layout),
                    y = fmt::format("{}[{},{},{},{}]{}", dtype, n, k, p, q, layout),
                    weight = fmt::format("{}[{},{},{},{}]", dtype, k, of_group, r, s);
  const auto graph = [&](const std::string& a, const std::string& b, const std::string& result, std::int64_t sums) {
    return fmt::format("graph @g(%a: {}, %b: {}, %side: {}, %bias: {}[{}]) {{\n", a, b, result, dtype, sums);
  };
  switch (random.from(0, 2)) {
    case 0:
      return graph(x, weight, y, k) + fmt::format("  %0 = conv2d(%a, %b) {{{}}} : {}\n", attrs, y) +
             finish(random, dtype, y, k, true);
    case 1:
      return graph(y, weight, x, c) +
             fmt::format("  %0 = conv2d_input_grad(%a, %b) {{input_size=[{},{}], {}}} : {}\n", h, w, attrs, x) +
             finish(random, dtype, x, c, true);
    default:
      return graph(x, y, weight, 1) +
             fmt::format("  %0 = conv2d_weight_grad(%a, %b) {{kernel_size=[{},{}], {}}} : {}\n", r, s, attrs, weight) +
             finish(random, dtype, weight, 1, false);
  }
}

// A product as `linear` and its gradients have them, whose operands are turned, or whose second one is computed before.
std::string product_of_many_channels(Random& random, const std::string& dtype) {
  const std::int64_t n = random.from(1, 256), c = random.of(kManyChannels), k = random.of(kManyChannels);
  if (n * c * k > kMostProducts) return product_of_many_channels(random, dtype);
  const auto type = [&](std::int64_t rows, std::int64_t columns) {
    return fmt::format("{}[{},{}]", dtype, rows, columns);
  };
  const bool turned_a = random.chance(40), turned_b = random.chance(40), summed_b = !turned_b && random.chance(40);
  std::string text =
      fmt::format("graph @g(%a: {}, %b: {}, %side: {}, %bias: {}[1]) {{\n", turned_a ? type(c, n) : type(n, c),
                  turned_b   ? type(k, c)
                  : summed_b ? fmt::format("{}[2,{},{}]", dtype, c, k)
                             : type(c, k),
                  type(n, k), dtype);
  if (turned_a) text += fmt::format("  %ta = permute(%a) {{dims=[1,0]}} : {}\n", type(n, c));
  if (turned_b) text += fmt::format("  %tb = permute(%b) {{dims=[1,0]}} : {}\n", type(c, k));
  if (summed_b) text += fmt::format("  %tb = sum(%b) {{dim=[0]}} : {}\n", type(c, k));
  return text +
         fmt::format("  %0 = matmul({}, {}) : {}\n", turned_a ? "%ta" : "%a", turned_b || summed_b ? "%tb" : "%b",
                     type(n, k)) +
         finish(random, dtype, type(n, k), 1, false);
}

}  // namespace

std::string random_anchor_of_many_channels(Random& random, const std::string& dtype) {
  if (random.chance(15)) return product_of_many_channels(random, dtype);
  const std::string graph = convolution_of_many_channels(random, dtype);
  // Of 16 bits the sums of so many terms are small as long as one operand is as often negative as not.
  if (dtype != "f32") return random.chance(30) ? with_prologue(random, graph, {"relu(%a)"}) : graph;
  return with_computed_image(random, random.chance(30) ? with_prologue(random, graph) : graph);
}

std::string random_product_of_images(Random& random, const std::string& dtype) {
  const std::int64_t n = random.from(1, 4), c = random.from(1, 40), k = random.from(1, 70), h = random.from(1, 9),
                     w = random.from(1, 9);
  const auto image = [&](std::int64_t channels) {
    return fmt::format("{}[{},{},{},{}]{}", dtype, n, channels, h, w, layout(random));
  };
  const std::string weight = fmt::format("{}[{},{},1,1]", dtype, k, c);
  const std::string graph =
      fmt::format("graph @g(%a: {}, %b: {}, %side: {}, %bias: {}[1]) {{\n", image(c), image(k), weight, dtype) +
      "  %0 = conv2d_weight_grad(%a, %b) {kernel_size=[1,1], stride=[1,1], padding=[0,0,0,0], dilation=[1,1], "
      "groups=1} : " +
      weight + "\n" + finish(random, dtype, weight, 1, false);
  return around(random, random.chance(40) ? with_prologue(random, graph) : graph);
}

std::string random_weight_gradient_of_tiles(Random& random) {
  const std::int64_t n = 2 * random.from(1, 4), c = 16 * random.from(1, 4), k = 16 * random.from(1, 6),
                     r = random.from(1, 3), s = random.from(1, 3), stride = random.from(1, 2), top = random.from(0, 1),
                     left = random.from(0, 1), p = random.from(1, 6), q = random.from(1, 6),
                     h = (p - 1) * stride + r - top, w = (q - 1) * stride + s - left;
  if (h < 1 || w < 1) return random_weight_gradient_of_tiles(random);
  const auto image = [&](std::int64_t channels, std::int64_t rows, std::int64_t columns) {
    return fmt::format("bf16[{},{},{},{}]{}", n, channels, rows, columns, random.chance(90) ? ":nhwc" : "");
  };
  const std::string weight = fmt::format("bf16[{},{},{},{}]{}", k, c, r, s, layout(random));
  const std::string graph =
      fmt::format("graph @g(%a: {}, %b: {}, %side: {}, %bias: bf16[1]) {{\n", image(c, h, w), image(k, p, q), weight) +
      fmt::format(
          "  %0 = conv2d_weight_grad(%a, %b) {{kernel_size=[{},{}], stride=[{},{}], padding=[{},{},0,0], "
          "dilation=[1,1], groups=1}} : {}\n",
          r, s, stride, stride, top, left, weight) +
      finish(random, "bf16", weight, 1, false);
  return around(random, random.chance(40) ? with_prologue(random, graph) : graph);
}

}  // namespace fusejit::testing
