// Sections about cuDNN: cuda.md's points 1 to 3, and the list at the end of docs/cudnn.md's head.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/cudnn/support/probe.h"
#include "tests/gpu_check/cudnn_run.h"
#include "tests/gpu_check/sections.h"

namespace fusejit::gpu_check {
namespace {

// The largest |got - want| over the largest |want|; NaN must meet NaN.
double difference(const std::vector<double>& got, const std::vector<double>& want) {
  double worst = 0, largest = 1e-30;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;
    const double d = std::abs(got[i] - want[i]);
    worst = std::max(worst, d <= 1e300 ? d : 1e300);
    if (std::isfinite(want[i])) largest = std::max(largest, std::abs(want[i]));
  }
  return worst / largest;
}

// "" or which result is off.
std::string wrong_results(const Tensors& got, const Tensors& want, double tolerance, double& worst) {
  std::string wrong;
  for (const auto& [role, values] : want) {
    const auto found = got.find(role);
    if (found == got.end()) return fmt::format("no {} came back", name(role));
    const double d = difference(found->second, values);
    worst = std::max(worst, d);
    if (d > tolerance && wrong.empty()) {
      wrong = fmt::format("{} is off by {:.2g} of its largest element, allowed is {:.1g}", name(role), d, tolerance);
    }
  }
  return wrong;
}

bool same(const Tensors& a, const Tensors& b) {
  for (const auto& [role, values] : a) {
    const std::vector<double>& other = b.at(role);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != other[i] && !(std::isnan(values[i]) && std::isnan(other[i]))) return false;
    }
  }
  return true;
}

void check_call(CudnnOnDevice& on_device, Report& report, const NamedCall& named) {
  const cudnn::Plan plan = plan_of(on_device.library(), on_device.device(), named);
  const Tensors inputs = made_up(named.call, plan.tensors, 3), want = meant(named.call, inputs);
  const Tensors got = on_device.run(plan, named.call, inputs);
  double worst = 0;
  report.check(named.name, wrong_results(got, want, named.tolerance, worst));
  report.check(named.name + ": twice", same(on_device.run(plan, named.call, inputs), got) ? "" : "other bits");
  std::string reloaded;
  try {
    const cudnn::Plan again = cudnn::reload_plan(on_device.library(), on_device.device(), named.call, plan.json());
    if (!same(on_device.run(again, named.call, inputs), got)) reloaded = "other bits than the plan it was saved from";
  } catch (const Error& error) {
    reloaded = error.what();
  }
  report.check(named.name + ": reloaded from its JSON", reloaded);
  report.row({{"call", named.name},
              {"tier", std::string(name(plan.engine.tier))},
              {"engine", plan.engine.index},
              {"workspace", plan.workspace_bytes},
              {"worst error", worst}});
}

// NaN in x must come out of a relu (design: NaN propagates).
void check_nan(CudnnOnDevice& on_device, Report& report) {
  for (const bool compiled : {false, true}) {
    NamedCall named = checked_calls()[1];
    named.compiled = compiled;
    if (compiled)
      named.numerics.tf32 = true, named.tolerance = std::max(named.tolerance, 2e-3);  // no other engine does
    const std::string what =
        fmt::format("NaN passes through relu, {} engine", compiled ? "runtime-compiled" : "precompiled");
    try {
      const cudnn::Plan plan = plan_of(on_device.library(), on_device.device(), named);
      Tensors inputs = made_up(named.call, plan.tensors, 3);
      inputs.at(cudnn::Role::x)[0] = NAN;
      const Tensors got = on_device.run(plan, named.call, inputs);
      double worst = 0;
      report.check(what, wrong_results(got, meant(named.call, inputs), named.tolerance, worst));
    } catch (const Error& error) {
      report.check(what, error.what());
    }
  }
}

// Whether notes tell the truth: strict f32 must be nearer to f64 than TF32 can be.
void check_tf32(CudnnOnDevice& on_device, Report& report) {
  NamedCall named = checked_calls()[0];
  double error[2] = {0, 0};
  for (const bool tf32 : {false, true}) {
    named.numerics.tf32 = tf32;
    const cudnn::Plan plan = plan_of(on_device.library(), on_device.device(), named);
    const Tensors inputs = made_up(named.call, plan.tensors, 3);
    wrong_results(on_device.run(plan, named.call, inputs), meant(named.call, inputs), 1, error[tf32]);
  }
  report.check("an engine that is said to compute in f32 does",
               error[0] < 1e-5 ? "" : fmt::format("off by {:.2g}", error[0]));
  report.say(fmt::format("f32 is off by {:.1e}, with TF32 allowed by {:.1e}", error[0], error[1]));
}

}  // namespace

void check_cudnn_numbers(Machine& machine, Report& report) {
  const Clock clock(machine);
  CudnnOnDevice on_device(machine);
  for (const NamedCall& named : checked_calls()) {
    if (clock.over()) throw Skipped("out of time before " + named.name);
    try {
      check_call(on_device, report, named);
    } catch (const Error& error) {
      report.check(named.name, error.what());
    }
  }
  check_nan(on_device, report);
  check_tf32(on_device, report);
}

void check_cudnn_device(Machine& machine, Report& report) {
  const Clock clock(machine);
  const auto library = cudnn::Library::load();
  if (!machine.options().cudnn) throw Skipped("cuDNN is not to be used");
  if (!library->available()) throw Skipped(library->why_not());
  const int capability = machine.device().context().properties().compute_capability;
  const cudnn::DeviceDescription* written = cudnn::device_of(capability);
  machine.device().context().enter();
  // A driver without a device has none to read.
  const cudnn::Descriptor device = machine.toy() && written
                                       ? cudnn::describe_device(library, *written)
                                       : cudnn::read_device(library, machine.device().context().ordinal());
  const std::string text = device.get_text(cudnn::CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
  report.say("device description: " + text.substr(0, text.find('\0')));
  if (!written) throw Skipped(fmt::format("no description of an sm_{} is written down to compare with", capability));
  const Json real = Json::parse(text.substr(0, text.find('\0'))), ours = Json::parse(written->json());
  for (const auto& [key, value] : real.items()) {
    if (!ours.contains(key) || ours[key] != value) {
      report.row({{"key", key}, {"real", value.dump()}, {"written", ours.contains(key) ? ours[key].dump() : "-"}});
    }
  }
  int probed = 0, other = 0;
  for (int p = 0; p < static_cast<int>(cudnn::patterns().size()); ++p) {
    for (int s = 0; s < static_cast<int>(cudnn::shape_classes().size()); ++s) {
      for (int c = 0; c < cudnn::kColumns; ++c) {
        const cudnn::Column column = cudnn::column(c);
        const char cell = cudnn::cells(p, s)[static_cast<std::size_t>(c)];
        if (column.compute_capability != capability || cell == '?' || clock.over()) continue;
        if (machine.toy() && (p > 1 || s > 0)) continue;
        // Precompiled engines are asked in a millisecond; the others for one class of shapes, a second each.
        const bool compile = s == 0 && !machine.toy();
        if (cell != 'P' && !compile) continue;
        const cudnn::Pattern& pattern = cudnn::patterns()[static_cast<std::size_t>(p)];
        const cudnn::Probe found =
            cudnn::probe(library, device, cudnn::sample_call(pattern, s, column), {.tf32 = column.tf32}, compile);
        ++probed;
        const char expected = cell >= 'a' && cell <= 'z' ? '-' : cell;
        if (found.cell == expected) continue;
        ++other;
        report.check(fmt::format("{} {} {}", pattern.name, cudnn::shape_classes()[static_cast<std::size_t>(s)].name,
                                 column.name()),
                     fmt::format("the table says {}, this device {}", expected, found.cell));
      }
    }
  }
  report.say(fmt::format("{} cells of the table probed with the real description, {} differ", probed, other));
  if (clock.over()) report.say("the rest of the cells: out of time");
}

}  // namespace fusejit::gpu_check
