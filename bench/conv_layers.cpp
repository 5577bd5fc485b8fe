// Convolutions as the scheduler writes them, against the FMA peak of the same run: the layers of the digits network and
// of ResNet-50, forward, input gradient and weight gradient. FLOP leave out the multiplications on padding.
#include "bench/command_line/options.h"
#include "bench/conv_layer.h"
#include "bench/measure.h"
#include "ir/graph.h"

namespace fusejit::bench {
namespace {

const std::vector<Layer> kLayers = {
    {250, 1, 28, 32, 3, 1, 0},   {250, 32, 26, 64, 3, 1, 0},   {16, 64, 56, 64, 3, 1, 1},   {16, 64, 56, 256, 1, 1, 0},
    {16, 256, 56, 64, 1, 1, 0},  {16, 128, 56, 128, 3, 2, 1},  {16, 128, 28, 128, 3, 1, 1}, {16, 512, 28, 128, 1, 1, 0},
    {16, 256, 14, 256, 3, 1, 1}, {16, 256, 14, 1024, 1, 1, 0}, {16, 512, 7, 512, 3, 1, 1},  {16, 512, 7, 2048, 1, 1, 0},
    {16, 256, 28, 256, 3, 2, 1}, {16, 512, 14, 512, 3, 2, 1},  {16, 256, 56, 512, 1, 2, 0}, {4, 3, 224, 64, 7, 2, 3},
};

struct Pass {
  const char* name;
  std::string (Layer::*text)(const std::string& dtype) const;
};
const Pass kPasses[] = {{"forward", &Layer::forward}, {"dx", &Layer::input_gradient}, {"dw", &Layer::weight_gradient}};

struct Case {
  Layer layer;
  std::string pass;
  std::unique_ptr<TimedPlan> plan;
};

// The step that does the work, and all the others (packing) together.
void report(const Case& c, double peak) {
  const scheduler::Plan& plan = c.plan->plan();
  std::size_t main = 0;
  double others = 0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    if (plan.steps[s].flop > plan.steps[main].flop) main = s;
  }
  for (std::size_t s = 0; s < plan.steps.size(); ++s) others += s == main ? 0 : c.plan->timing(s).median();
  const Timing& t = c.plan->timing(main);
  const double ms = t.median();
  fmt::print("{:<26} {:<8} {:>8.3f} {:>8.3f}..{:<8.3f} {:>8.1f} {:>7.1f} {:>7.1f} {:>8.3f} {:>7.0f}\n", c.layer.label(),
             c.pass, ms, t.best(), quantile(t.processor, 0.9), c.layer.flop() / ms * 1e-6,
             100 * c.layer.flop() / ms * 1e-6 / peak, 100 * c.layer.flop() / t.best() * 1e-6 / peak, others,
             c.plan->code(main).compile_milliseconds);
}

}  // namespace
}  // namespace fusejit::bench

int main(int argc, char** argv) {
  using namespace fusejit;
  using namespace fusejit::bench;
  int rounds = 9, threads = 1;
  std::string only, target = "host", dtype = "f32", schedule;
  const auto end =
      read_options(argc, argv, "Convolutions of the scheduler against the FMA peak of the same run",
                   {{"--rounds", &rounds, "runs of each contender"},
                    {"--threads", &threads, "workers"},
                    {"--only", &only, "cases whose line starts with or contains this, such as 'dw' or '3x3 64'"},
                    {"--dtype", &dtype, "f32, bf16, f16 or f64"},
                    {"--schedule", &schedule, "in place of the chosen one, such as 'schedule { vector k 16 x 2 … }'"},
                    {"--target", &target, "target text"}});
  if (end) return *end;
  const Target machine = Target::parse(target);
  Workers workers(threads);
  scheduler::PlanOptions options{machine, scheduler::Rules::all, {}};
  if (!schedule.empty())
    options.reschedule.anchor = [&](const auto&, const auto&) { return scheduler::parse_schedule(schedule); };
  PeakInTurn peak(machine);
  fmt::print("{} thread{}, target {}\n{:<26} {:<8} {:>8} {:>18} {:>8} {:>7} {:>7} {:>8} {:>7}\n", threads,
             threads > 1 ? "s" : "", machine.str(), "layer", "pass", "cpu ms", "best .. 90 %", "GFLOP/s", "% peak",
             "best %", "pack ms", "compile");
  for (const Layer& layer : kLayers) {
    std::vector<Case> cases;
    for (const Pass& pass : kPasses) {
      if ((layer.label() + " " + pass.name).find(only) == std::string::npos) continue;
      if (layer.channels < 4 && std::string(pass.name) == "dx") continue;  // training never needs it
      cases.push_back({layer, pass.name, nullptr});
      cases.back().plan = std::make_unique<TimedPlan>(ir::parse_graph((layer.*pass.text)(dtype)), options);
    }
    for (int round = -1; round < rounds && !cases.empty(); ++round) {
      peak.measure(workers);
      for (Case& c : cases) {
        if (round == 0) c.plan->forget();
        c.plan->measure(workers);
      }
    }
    for (const Case& c : cases) report(c, peak.gflops());
    std::fflush(stdout);
  }
  fmt::print("FMA peak {:.1f} GFLOP/s\n", peak.gflops());
}
