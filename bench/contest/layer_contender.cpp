// fusejit's single convolutions as a contender of bench/cpu.py. Weights are packed outside the time, as other libraries
// measure theirs: what a step counts is everything else, wall time.
#include "bench/contest/plan_contender.h"
#include "bench/conv_layer.h"

namespace fusejit::bench {
namespace {

std::string graph_text(const contest::LayerPart& part, const std::string& dtype) {
  const Layer layer{part.batch, part.channels, part.size, part.outputs, part.kernel, part.stride, part.padding};
  if (part.pass == "forward") return layer.forward(dtype);
  return part.pass == "dx" ? layer.input_gradient(dtype) : layer.weight_gradient(dtype);
}

// Reads the weights and not the activation.
bool is_packing(const scheduler::Plan& plan, const scheduler::PlanStep& step, const std::string& pass) {
  const auto reads = [&](std::size_t parameter) {
    return std::find(step.values.begin(), step.values.end(), plan.parameters[parameter]) != step.values.end();
  };
  return pass != "dw" && reads(1) && !reads(0);
}

int contend(const contest::Flags& flags) {
  return serve_plans(
      flags,
      [](const std::string& part, const std::string& dtype) {
        return ir::parse_graph(graph_text(contest::LayerPart(part), dtype));
      },
      [](const std::string& part, const scheduler::Plan& plan, const scheduler::PlanStep& step) {
        return !is_packing(plan, step, contest::LayerPart(part).pass);
      });
}

}  // namespace
}  // namespace fusejit::bench

int main(int argc, char** argv) { return contest::run("layer_contender", argc, argv, fusejit::bench::contend); }
