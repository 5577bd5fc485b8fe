// fusejit's training of a few layers as a contender of bench/cpu.py: the forward pass and every gradient, from tensors
// in NHWC to tensors in NHWC, as in the middle of a network. Every kernel counts, those that pack weights too: in
// training they are new in every step. Wall time.
#include "bench/contest/plan_contender.h"
#include "ir/passes/grad.h"

namespace fusejit::bench {
namespace {

ir::Graph gradients_of(const contest::PatternPart& part, const std::string& dtype) {
  const bool conv = part.layers.rfind("conv_", 0) == 0, norm = part.layers.find("bn_") != std::string::npos,
             bias = part.layers.find("bias_") != std::string::npos, add = part.layers.find("add_") != std::string::npos;
  if ((!conv && !norm) || norm == bias) throw std::invalid_argument("no pattern: " + part.layers);
  const int c = part.channels;
  const std::string image = fmt::format("{}[{},{},{},{}]:nhwc", dtype, part.batch, c, part.size, part.size),
                    vector = fmt::format("{}[{}]", dtype, c);
  std::string parameters = "%x: " + image, body, last = "%x";
  std::vector<std::string> wrt{"x"};
  const auto parameter = [&](const std::string& name, const std::string& type) {
    parameters += ", %" + name + ": " + type, wrt.push_back(name);
  };
  const auto op = [&](const std::string& call) {
    const std::string result = fmt::format("%{}", wrt.size() * 10);  // a number that no other line has
    body += fmt::format("{} = {} : {} ", result, call, image), last = result;
  };
  if (conv) {
    parameter("w", fmt::format("{}[{},{},3,3]:nhwc", dtype, c, c));
    op("conv2d(%x, %w) {stride=[1,1], padding=[1,1,1,1]}");
  }
  if (norm) {
    parameter("s", vector), parameter("t", vector);
    op(fmt::format("batch_norm_train({}, %s, %t) {{eps=1e-05, correction=0, eps_outside=false}}", last));
  }
  if (bias) parameter("b", vector), op(fmt::format("bias_add({}, %b)", last));
  if (add) parameter("side", image), op(fmt::format("add({}, %side)", last));
  body += fmt::format("%1 = relu({}) : {} return %1", last, image);
  return ir::differentiate(ir::parse_graph("graph @g(" + parameters + ") { " + body + " }"), wrt);
}

int contend(const contest::Flags& flags) {
  return serve_plans(
      flags,
      [](const std::string& part, const std::string& dtype) { return gradients_of(contest::PatternPart(part), dtype); },
      [](const std::string&, const scheduler::Plan&, const scheduler::PlanStep&) { return true; });
}

}  // namespace
}  // namespace fusejit::bench

int main(int argc, char** argv) { return contest::run("pattern_contender", argc, argv, fusejit::bench::contend); }
