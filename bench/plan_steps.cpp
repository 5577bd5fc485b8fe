// Every kernel of a plan by itself: milliseconds, arithmetic and bytes per second, beside the FMA peak of the same run.
#include "bench/command_line/options.h"
#include "bench/measure.h"
#include "frontend/models/named.h"

int main(int argc, char** argv) {
  using namespace fusejit;
  using namespace fusejit::bench;
  std::string source = "convnet@250:train", target = "host", rules = "all";
  int rounds = 7, threads = 1;
  const auto end = read_options(argc, argv, "The kernels of a plan, one by one",
                                {{"source", &source, "built-in model"},
                                 {"--rounds", &rounds, "runs of the plan"},
                                 {"--threads", &threads, "workers"},
                                 {"--target", &target, "target text"},
                                 {"--rules", &rules, "all or none"}});
  if (end) return *end;
  const models::ModelGraph model = models::model_graph(source);
  const Target machine = Target::parse(target);
  const auto start = std::chrono::steady_clock::now();
  TimedPlan timed(model.graph, {machine, scheduler::parse_rules(rules), {model.donated.begin(), model.donated.end()}});
  const double compile = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  Workers workers(threads);
  PeakInTurn peak(machine);
  for (int round = -1; round < rounds; ++round) {
    if (round == 0) timed.forget();
    peak.measure(workers);
    timed.measure(workers);
  }
  const scheduler::Plan& plan = timed.plan();
  fmt::print("{} on {}, {} threads: {} kernels, planned and compiled in {:.0f} ms, FMA peak {:.1f} GFLOP/s\n", source,
             machine.str(), threads, plan.steps.size(), compile, peak.gflops());
  fmt::print("{:>8} {:>8} {:>9} {:>7} {:>8} {:>8}  {}\n", "cpu ms", "best", "GFLOP/s", "% peak", "GB/s", "compile",
             "kernel");
  double total = 0, best = 0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const scheduler::PlanStep& step = plan.steps[s];
    const double ms = timed.timing(s).median();
    total += ms, best += timed.timing(s).best();
    fmt::print("{:>8.3f} {:>8.3f} {:>9.1f} {:>7.1f} {:>8.1f} {:>8.1f}  {}: {}\n", ms, timed.timing(s).best(),
               step.flop / ms * 1e-6, 100 * step.flop / ms * 1e-6 / peak.gflops(),
               static_cast<double>(step.read_bytes + step.written_bytes) / ms * 1e-6,
               timed.code(s).compile_milliseconds, step.name, fmt::join(step.ops, ", "));
  }
  fmt::print("{:>8.3f} {:>8.3f}  all kernels\n", total, best);
}
