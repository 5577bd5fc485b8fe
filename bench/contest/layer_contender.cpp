// fusejit's single convolutions as a contender of bench/cpu.py. Weights are packed outside the time, as other libraries
// measure theirs: what a step counts is everything else, wall time.
#include "bench/contest/contender.h"
#include "bench/conv_layer.h"
#include "bench/measure.h"
#include "ir/graph.h"

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
  const double held_before = contest::resident_mib("VmRSS");
  const std::string winograd = flags.text("winograd", "off"), dtype = flags.text("dtype", "f32");
  const Target target = Target::parse(winograd == "auto" ? "host,winograd=1" : "host");
  Workers workers(flags.number("threads", 2));
  std::string now;
  std::unique_ptr<TimedPlan> plan;
  return contest::serve("fusejit", held_before, [&](const std::string& text) {
    const contest::LayerPart part(text);
    if (text != now) {
      plan.reset();
      plan = std::make_unique<TimedPlan>(ir::parse_graph(graph_text(part, dtype)),
                                         scheduler::PlanOptions{target, scheduler::Rules::all, {}});
      now = text;
    }
    plan->forget();
    plan->measure(workers);
    double milliseconds = 0;
    for (std::size_t s = 0; s < plan->plan().steps.size(); ++s) {
      if (!is_packing(plan->plan(), plan->plan().steps[s], part.pass)) milliseconds += plan->timing(s).wall.front();
    }
    return contest::StepResult{.milliseconds = milliseconds};
  });
}

}  // namespace
}  // namespace fusejit::bench

int main(int argc, char** argv) { return contest::run("layer_contender", argc, argv, fusejit::bench::contend); }
