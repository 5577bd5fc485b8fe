// Element-wise chains and channel reductions on 64 MiB tensors against copying in the same run: useful bytes a second,
// as a share of the better of a plain and a non-temporal copy.
#include "bench/command_line/options.h"
#include "bench/measure.h"
#include "ir/graph.h"

namespace fusejit::bench {
namespace {

// Channels inside ([16,128,128,64] in memory) or outside ([16,64,128,128]).
const char* const kInside = "f32[16,64,128,128]:nhwc";
const char* const kOutside = "f32[16,64,128,128]";

struct Case {
  const char* name;
  const char* text;  // X stands for the type of the big tensors
};

const Case kCases[] = {
    {"relu(x*2)", "graph @f(%x: X) { %0 = mul(%x, 2) : X %1 = maximum(%0, 0) : X return %1 }"},
    {"relu(x+y)", "graph @f(%x: X, %y: X) { %0 = add(%x, %y) : X %1 = maximum(%0, 0) : X return %1 }"},
    {"relu(x*s+t)",
     "graph @f(%x: X, %s: f32[1,64,1,1], %t: f32[1,64,1,1]) { %0 = mul(%x, %s) : X %1 = add(%0, %t) : X "
     "%2 = maximum(%1, 0) : X return %2 }"},
    {"sigmoid(x)*y", "graph @f(%x: X, %y: X) { %0 = sigmoid(%x) : X %1 = mul(%0, %y) : X return %1 }"},
    {"sum", "graph @f(%x: X) { %0 = sum(%x) {dim=[0,2,3]} : f32[64] return %0 }"},
    {"amax", "graph @f(%x: X) { %0 = amax(%x) {dim=[0,2,3]} : f32[64] return %0 }"},
    {"mean, var",
     "graph @f(%x: X) { %0 = mean(%x) {dim=[0,2,3]} : f32[64] %1 = var(%x) {dim=[0,2,3], correction=0} : f32[64] "
     "return %0, %1 }"},
    {"sum g, sum g*(x-m)",
     "graph @f(%g: X, %x: X, %m: f32[1,64,1,1]) { %0 = sub(%x, %m) : X %1 = mul(%g, %0) : X "
     "%2 = sum(%g) {dim=[0,2,3]} : f32[64] %3 = sum(%1) {dim=[0,2,3]} : f32[64] return %2, %3 }"},
    {"sums of g where x>0",
     "graph @f(%g: X, %x: X, %m: f32[1,64,1,1]) { %0 = gt(%x, 0) : B %1 = where(%0, %g, 0) : X %2 = sub(%x, %m) : X "
     "%3 = mul(%1, %2) : X %4 = sum(%1) {dim=[0,2,3]} : f32[64] %5 = sum(%3) {dim=[0,2,3]} : f32[64] return %4, %5 "
     "}"},
    {"g*a + x*b + c",
     "graph @f(%g: X, %x: X, %a: f32[1,64,1,1], %b: f32[1,64,1,1], %c: f32[1,64,1,1]) { %0 = mul(%g, %a) : X "
     "%1 = mul(%x, %b) : X %2 = add(%0, %1) : X %3 = add(%2, %c) : X return %3 }"},
};

std::string with_type(std::string text, const std::string& big) {
  const std::string boolean = "bool" + big.substr(3);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool type = i > 1 && text[i - 1] == ' ' && text[i - 2] == ':';
    out += type && text[i] == 'X' ? big : type && text[i] == 'B' ? boolean : std::string(1, text[i]);
  }
  return out;
}

class Copy {
 public:
  Copy(const Target& target, const char* hint) : from_(take(kBytes)), to_(take(kBytes)) {
    const ir::Kernel kernel = ir::parse_kernel(fmt::format(
        R"(
kernel @copy(%x: f32[{0}] read align 64, %y: f32[{0}] write align 64) on {1} {{
  phase {{ for %t in 0..64 threads {{ for %i in 0..{2} {{ for %l in 0..{3} vector {{
    %0 = load %x[%t*{4} + %i*{3} + %l] : f32  store %y[%t*{4} + %i*{3} + %l], %0 {5} }} }} }} }} }})",
        kBytes / 4, name(target.isa), kBytes / 256 / target.lanes32(), target.lanes32(), kBytes / 256, hint));
    code_ = codegen::x86::compile(kernel, target);
    std::memset(from_.get(), 0, kBytes), std::memset(to_.get(), 0, kBytes);
  }
  void measure(Workers& workers) { workers.run(*code_, {from_.get(), to_.get()}, nullptr, timing); }
  double gigabytes(double q) const { return 2e-6 * kBytes / quantile(timing.processor, q); }
  Timing timing;

 private:
  static constexpr std::int64_t kBytes = 64 << 20;
  std::shared_ptr<const codegen::CompiledKernel> code_;
  Block from_, to_;
};

struct Contender {
  std::string label;
  std::unique_ptr<TimedPlan> plan;
  double bytes() const {  // read once and written once
    double total = 0;
    for (const scheduler::PlanValue& value : plan->plan().values) {
      total += value.storage == scheduler::Storage::arena ? 0 : static_cast<double>(value.bytes);
    }
    return total;
  }
  double milliseconds(double q) const {
    double total = 0;
    for (std::size_t s = 0; s < plan->plan().steps.size(); ++s) total += quantile(plan->timing(s).processor, q);
    return total;
  }
};

}  // namespace
}  // namespace fusejit::bench

int main(int argc, char** argv) {
  using namespace fusejit;
  using namespace fusejit::bench;
  int rounds = 9, threads = 1;
  std::string only, target = "host";
  const auto end = read_options(argc, argv, "Memory-bound kernels against copying in the same run",
                                {{"--rounds", &rounds, "runs of each contender"},
                                 {"--threads", &threads, "workers"},
                                 {"--only", &only, "cases whose name contains this"},
                                 {"--target", &target, "target text"}});
  if (end) return *end;
  const Target machine = Target::parse(target);
  Workers workers(threads);
  Copy plain(machine, ""), non_temporal(machine, "nt");
  std::vector<Contender> contenders;
  for (const char* type : {kInside, kOutside}) {
    for (const Case& c : kCases) {
      const std::string label = std::string(c.name) + (type == kInside ? ", nhwc" : ", nchw");
      if (label.find(only) == std::string::npos) continue;
      const ir::Graph graph = ir::parse_graph(with_type(c.text, type));
      contenders.push_back(
          {label, std::make_unique<TimedPlan>(graph, scheduler::PlanOptions{machine, scheduler::Rules::all, {}})});
    }
  }
  for (int round = -1; round < rounds; ++round) {
    if (round == 0) plain.timing = {}, non_temporal.timing = {};
    for (Contender& c : contenders) {
      if (round == 0) c.plan->forget();
      plain.measure(workers), non_temporal.measure(workers);
      c.plan->measure(workers);
    }
  }
  const double best = std::max(plain.gigabytes(0.5), non_temporal.gigabytes(0.5));
  fmt::print("{} thread{}, target {}\n{:<28} {:>8} {:>18} {:>8} {:>8}\n", threads, threads > 1 ? "s" : "",
             machine.str(), "kernel", "cpu ms", "10 % .. 90 %", "GB/s", "% copy");
  const auto line = [&](const std::string& label, double ms, double low, double high, double rate) {
    fmt::print("{:<28} {:>8.2f} {:>8.2f}..{:<8.2f} {:>8.1f} {:>8.0f}\n", label, ms, low, high, rate, 100 * rate / best);
  };
  for (const auto& [label, copy] : {std::pair("copy", &plain), std::pair("copy, non-temporal", &non_temporal)}) {
    line(label, quantile(copy->timing.processor, 0.5), quantile(copy->timing.processor, 0.1),
         quantile(copy->timing.processor, 0.9), copy->gigabytes(0.5));
  }
  for (const Contender& c : contenders) {
    line(c.label, c.milliseconds(0.5), c.milliseconds(0.1), c.milliseconds(0.9),
         c.bytes() / c.milliseconds(0.5) * 1e-6);
  }
}
