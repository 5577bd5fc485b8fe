// fusejit bench: a step of a built-in model as a program of a user's runs it, or a graph file, timed.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "frontend/io/graph_file.h"
#include "frontend/models/named.h"
#include "fusejit/fusejit.h"
#include "ir/base/check.h"
#include "runtime/backends.h"
#include "runtime/disk/settings.h"
#include "runtime/session.h"
#include "tools/fusejit/command.h"
#include "tools/output.h"
#include "tools/seeded.h"

namespace fusejit::tools {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Measured {
  std::vector<double> steps;  // without the first
  double first = 0, compile = 0;
  std::int64_t peak = 0, ledger = 0, bound = 0, kernels = 0;
  std::int64_t plans = 0, plans_loaded = 0, kernels_loaded = 0, kernels_compiled = 0;
};

// `step` computes all of it; what it took before the second call is the first step's.
template <class Step>
void time_steps(int count, Measured& measured, const Step& step) {
  const auto start = Clock::now();
  step();
  measured.first = milliseconds_since(start);
  for (int i = 0; i < count; ++i) {
    const auto begun = Clock::now();
    step();
    measured.steps.push_back(milliseconds_since(begun));
  }
}

Tensor images(const Type& type) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> pixels(static_cast<std::size_t>(type.elements()));
  for (float& pixel : pixels) pixel = normal(random);
  return from_host(pixels.data(), type.shape, f32).to(type.dtype).eval();
}

Measured time_model(const BenchOptions& options, DType dtype) {
  set_options({.target = options.target,
               .rules = std::string(name(options.rules)),
               .memory_limit = options.memory_limit.str(),
               .threads = options.threads,
               .device = options.device,
               .tune = std::string(runtime::name(options.tune))});
  manual_seed(1);
  const models::NamedNetwork model = models::named_network(options.source, dtype);
  const Device device(options.device);
  const Tensor x = images(model.input).to(device).eval();
  std::vector<std::int64_t> labels(static_cast<std::size_t>(model.target.elements()));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int64_t>(i) % model.classes;
  const Tensor target = from_host(labels.data(), model.target, i64).to(device).eval();
  const Statistics before = stats();
  memory::reset_peak(device);
  Measured measured;
  if (model.train) {
    auto step = train_step(*model.net, *model.optimizer,
                           [&](const Tensor& in, const Tensor& t) { return model.loss((*model.net)(in), t); },
                           {.autocast = model.autocast});
    time_steps(options.steps, measured, [&] { step(x, target).item<double>(); });
  } else {
    model.net->eval();
    const Autocast cast(model.autocast.value_or(f32));
    const Frozen serve = model.net->freeze();
    time_steps(options.steps, measured, [&] {
      serve(x).eval();
      synchronize(device);
    });
  }
  const Statistics after = stats();
  measured.compile = after.compile_milliseconds - before.compile_milliseconds;
  measured.plans = after.plans_made - before.plans_made;
  measured.plans_loaded = after.plans_loaded - before.plans_loaded;
  measured.kernels_loaded = after.kernels_loaded - before.kernels_loaded;
  measured.kernels_compiled = after.kernels_compiled - before.kernels_compiled;
  measured.ledger = after.last_plan.ledger_bytes, measured.bound = after.last_plan.bound_bytes;
  measured.kernels = after.last_plan.kernels;
  measured.peak = memory::peak(device);
  return measured;
}

Measured time_graph(const BenchOptions& options) {
  const ir::Graph graph = io::read_graph(options.source);
  runtime::SessionOptions wanted;
  wanted.target = Target::parse(options.target);
  wanted.rules = options.rules, wanted.memory_limit = options.memory_limit;
  wanted.threads = options.threads, wanted.tune = options.tune;
  wanted.disk = runtime::disk::user_cache("on", {});
  wanted.frozen = runtime::disk::is_frozen();
  const Device device(options.device);
  if (!device.is_cpu()) wanted = runtime::on_device(wanted, device);
  runtime::Session session(wanted);
  std::vector<runtime::Buffer> arguments;
  for (const ir::Value& parameter : graph.parameters())
    arguments.push_back(session.place(seeded_argument(parameter.type(), static_cast<std::uint32_t>(arguments.size()))));
  session.reset_peak_memory();
  Measured measured;
  time_steps(options.steps, measured, [&] {
    session.run(graph, arguments);
    session.synchronize();
  });
  const runtime::SessionStatistics s = session.statistics();
  measured.compile = s.compile_milliseconds, measured.plans = s.plans_made, measured.plans_loaded = s.plans_loaded;
  measured.kernels_loaded = s.kernels_loaded, measured.kernels_compiled = s.kernels_compiled;
  measured.ledger = s.last_run.ledger_bytes, measured.bound = s.last_run.bound_bytes;
  measured.kernels = s.last_run.kernels, measured.peak = session.memory().peak;
  return measured;
}

}  // namespace

int bench(const BenchOptions& options) {
  const bool is_model = models::is_model_source(options.source);
  const std::optional<DType> dtype = options.dtype.empty() ? f32 : dtype_named(options.dtype);
  if (!dtype || !is_float(*dtype))
    throw UsageError{fmt::format("--dtype {} is not known (f32, f64, f16, bf16)", options.dtype)};
  if (!is_model && !options.dtype.empty())
    throw UsageError{fmt::format("--dtype {}: the dtypes of {} are those it says", options.dtype, options.source)};
  Measured m = is_model ? time_model(options, *dtype) : time_graph(options);
  std::sort(m.steps.begin(), m.steps.end());
  const double median = m.steps[m.steps.size() / 2], lowest = m.steps.front(), highest = m.steps.back();
  constexpr double kMiB = 1 << 20;
  if (options.json) {
    const nlohmann::ordered_json report = {{"schema_version", 1},
                                           {"source", options.source},
                                           {"device", options.device},
                                           {"target", options.target},
                                           {"dtype", is_model ? std::string(name(*dtype)) : ""},
                                           {"threads", options.threads},
                                           {"rules", name(options.rules)},
                                           {"memory_limit", options.memory_limit.str()},
                                           {"steps", m.steps.size()},
                                           {"median_ms", median},
                                           {"min_ms", lowest},
                                           {"max_ms", highest},
                                           {"first_step_ms", m.first},
                                           {"compile_ms", m.compile},
                                           {"peak_bytes", m.peak},
                                           {"ledger_bytes", m.ledger},
                                           {"bound_bytes", m.bound},
                                           {"kernels", m.kernels},
                                           {"plans", m.plans},
                                           {"plans_loaded", m.plans_loaded},
                                           {"kernels_loaded", m.kernels_loaded},
                                           {"kernels_compiled", m.kernels_compiled}};
    std::fputs((report.dump(2) + "\n").c_str(), stdout);
  } else {
    fmt::print("{}: median {:.2f} ms of {} steps ({:.2f} to {:.2f}), the first {:.1f}\n", options.source, median,
               m.steps.size(), lowest, highest, m.first);
    fmt::print("{} kernels, {:.1f} MiB moved a step (no plan less than {:.1f}), at most {:.1f} MiB in use\n", m.kernels,
               static_cast<double>(m.ledger) / kMiB, static_cast<double>(m.bound) / kMiB,
               static_cast<double>(m.peak) / kMiB);
    fmt::print("ready in {:.1f} ms: {} of {} plans and {} of {} kernels from disk\n", m.compile, m.plans_loaded,
               m.plans, m.kernels_loaded, m.kernels_loaded + m.kernels_compiled);
  }
  finish_output();
  return kDone;
}

}  // namespace fusejit::tools
