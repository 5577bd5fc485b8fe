// repro: a folder that reproduces one kernel: its loops, its code, the bytes it was given in a run of the whole plan,
// what it must write, and a program that checks and times it. Beside it, what it means as a graph.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <span>

#include "codegen/arena.h"
#include "frontend/io/files.h"
#include "frontend/io/npz.h"
#include "ir/base/check.h"
#include "ir/kernel/interp/interp.h"
#include "ir/passes/passes.h"
#include "scheduler/contents.h"
#include "scheduler/uses.h"
#include "tools/fusejit-dump/machine_code.h"
#include "tools/fusejit-dump/measure/arrays.h"
#include "tools/fusejit-dump/measure/running.h"
#include "tools/fusejit-dump/repro/meaning.h"
#include "tools/fusejit-dump/repro/repro_program.h"
#include "tools/fusejit-dump/rows.h"

namespace fusejit::tools {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

// Interpreters are slow: more than that would take many seconds.
constexpr double kMostInterpreted = 3e7;

double work(const scheduler::PlanStep& step) {
  return step.flop + static_cast<double>(step.read_bytes + step.written_bytes) / 4;
}

// The plan's values before and after a step. Of values that the step does not touch, some are gone by then.
struct Snapshot {
  std::vector<Bytes> before, after;
};

Snapshot snapshot(Running& running, int step, const std::vector<int>& wanted, int& watched,
                  std::function<void(std::span<void* const>, bool)>& look) {
  const scheduler::Plan& plan = running.plan();
  Snapshot shot{std::vector<Bytes>(plan.values.size()), std::vector<Bytes>(plan.values.size())};
  look = [&](std::span<void* const> values, bool is_done) {
    for (const int v : wanted) {
      const auto i = static_cast<std::size_t>(v);
      const auto* const bytes = static_cast<const std::byte*>(values[i]);
      (is_done ? shot.after : shot.before)[i].assign(bytes, bytes + plan.values[i].bytes);
    }
  };
  watched = step;
  running.step();
  watched = -1;
  return shot;
}

class Folder {
 public:
  explicit Folder(const std::string& path) : path_(path) {
    std::error_code error;
    fs::create_directories(path_ / "buffers", error);
    if (error) throw FileError(fmt::format("{} cannot be made: {}", (path_ / "buffers").string(), error.message()));
  }
  void write(const std::string& name, std::span<const std::byte> bytes) const {
    io::write_file((path_ / name).string(), bytes);
  }
  void write(const std::string& name, std::string_view text) const { write(name, std::as_bytes(std::span(text))); }
  std::string path(const std::string& name) const { return (path_ / name).string(); }

 private:
  const fs::path path_;
};

// "%12 conv2d" -> "v12_conv2d"
std::string file_name(std::string label) {
  label = label.substr(1);
  for (char& c : label) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return label;
}

// What the kernel leaves, by its text; empty where that would take too long.
std::vector<Bytes> interpreted(const scheduler::PlanStep& step, const Snapshot& shot) {
  if (work(step) > kMostInterpreted) return {};
  std::vector<Bytes> memory;
  std::vector<void*> buffers;
  for (const int v : step.values) {
    memory.push_back(shot.before[static_cast<std::size_t>(v)]);
    buffers.push_back(memory.back().data());
  }
  ir::interpret(*step.kernel, buffers, {});
  return memory;
}

void write_buffers(const Folder& folder, const scheduler::Plan& plan, const scheduler::PlanStep& step,
                   const Snapshot& shot, Repro& repro) {
  const std::vector<Bytes> meant = interpreted(step, shot);
  repro.is_interpreted = !meant.empty();
  const scheduler::Contents contents(plan, step);
  std::size_t b = 0;
  scheduler::for_each_use(step, [&](int value, ir::MemKind kind) {
    const std::string& label = contents[value];
    const auto v = static_cast<std::size_t>(value);
    const std::string file = fmt::format("buffers/{}_{}", b, file_name(label));
    ReproBuffer buffer{label, plan.values[v].dtype, plan.values[v].bytes, "", ""};
    if (kind != ir::MemKind::write) folder.write(buffer.before = file + ".before.bin", shot.before[v]);
    if (kind != ir::MemKind::read)
      folder.write(buffer.after = file + ".after.bin", meant.empty() ? shot.after[v] : meant[b]);
    repro.buffers.push_back(std::move(buffer));
    ++b;
  });
}

// Each op by itself, by the graph interpreter where that is quick enough.
std::vector<ir::Array> evaluate(const ir::Graph& graph, const std::vector<ir::Array>& arguments, bool is_short) {
  if (is_short) return ir::interpret(graph, arguments);
  runtime::SessionOptions options;
  options.rules = scheduler::Rules::none;
  runtime::Session session(options);
  std::vector<runtime::Buffer> buffers;
  for (const ir::Array& argument : arguments) buffers.push_back(to_buffer(argument));
  std::vector<ir::Array> results;
  for (const runtime::Buffer& result : session.run(graph, buffers)) results.push_back(to_array(result));
  return results;
}

io::NamedArray named(const std::string& name, const ir::Array& array) {
  return {io::stored_name(name, array.type.dtype), array.type.dtype, array.type.shape, array.bytes};
}

// Of a float result: what another order of its sums may change.
void widen(Repro& repro, const ir::Array& result) {
  if (!is_float(result.type.dtype)) return;
  double largest = 0;
  for (std::int64_t i = 0; i < result.type.elements(); ++i) {
    const double magnitude = std::fabs(ir::cast(result.at(i), DType::f64).f64());
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  const double unit = bits(result.type.dtype) < 32 ? 2e-2 : result.type.dtype == DType::f32 ? 1e-4 : 1e-12;
  repro.relative = std::max(repro.relative, unit);
  repro.absolute = std::max(repro.absolute, unit * largest);
}

// What a value of the plan holds, as a tensor: masks may be kept one bit an element, and between the channels of a part
// of a concatenation are those of others.
void fill(runtime::Buffer& buffer, const Bytes& bytes, const scheduler::Plan& plan, int value) {
  const Type& type = buffer.type();
  if (const int around = plan.values[static_cast<std::size_t>(value)].inside; around >= 0) {
    const std::int64_t pixels = type.elements() / type.shape[1], row = type.bytes() / pixels,
                       pitch = plan.values[static_cast<std::size_t>(around)].bytes / pixels;
    for (std::int64_t i = 0; i < pixels; ++i)
      std::memcpy(static_cast<std::byte*>(buffer.data()) + i * row, bytes.data() + i * pitch,
                  static_cast<std::size_t>(row));
    return;
  }
  if (static_cast<std::size_t>(type.bytes()) == bytes.size()) {
    std::memcpy(buffer.data(), bytes.data(), bytes.size());
    return;
  }
  for (std::int64_t i = 0; i < type.elements(); ++i)
    ir::store_element(buffer.data(), type.dtype, i, ir::cast(ir::load_element(bytes.data(), DType::b1, i), type.dtype));
}

void write_meaning(const Folder& folder, const Meaning& meaning, const scheduler::Plan& plan,
                   const scheduler::PlanStep& step, const Snapshot& shot, Repro& repro) {
  std::vector<ir::Array> arguments;
  std::vector<io::NamedArray> inputs, expected;
  for (std::size_t p = 0; p < meaning.reads.size(); ++p) {
    const Bytes& bytes = shot.before[static_cast<std::size_t>(meaning.reads[p])];
    runtime::Buffer buffer = runtime::Buffer::allocate(meaning.graph.parameters()[p].type());
    fill(buffer, bytes, plan, meaning.reads[p]);
    arguments.push_back(to_array(buffer));
    inputs.push_back(named(meaning.graph.parameter_name(p), arguments.back()));
  }
  const std::vector<ir::Array> results = evaluate(meaning.graph, arguments, work(step) <= kMostInterpreted);
  for (std::size_t r = 0; r < results.size(); ++r) {
    widen(repro, results[r]);
    expected.push_back(named(fmt::format("out{}", r), results[r]));
  }
  folder.write("graph.fj", ir::print(meaning.graph));
  io::write_npz(folder.path("inputs.npz"), inputs);
  io::write_npz(folder.path("expected.npz"), expected);
}

// A value is there before step `s` if it stands outside the arena, or in it and is still read or written; a part of
// a concatenation as long as that is there.
bool is_there(const scheduler::Plan& plan, int v, int s) {
  const int around = plan.values[static_cast<std::size_t>(v)].inside;
  const scheduler::PlanValue& value = plan.values[static_cast<std::size_t>(around >= 0 ? around : v)];
  return value.storage != scheduler::Storage::arena || (value.first_step < s && value.last_step >= s);
}

}  // namespace

int repro(const ReproOptions& options, Invocation& invocation) {
  const Target target = parse_target(options.target);
  if (target.isa == Isa::cuda)
    throw UnsupportedError("repro: only kernels for this processor are run; extract gives one for CUDA as a file");
  if (fs::exists(options.output) && !(fs::is_directory(options.output) && fs::is_empty(options.output)))
    throw FileError(fmt::format("{} is there already", options.output));
  int watched = -1;
  std::function<void(std::span<void* const>, bool)> look;
  runtime::Checks checks;
  checks.observe = [&](int step, std::span<void* const> values, bool is_done) {
    if (step == watched) look(values, is_done);
  };
  Running running(read_source(invocation, options), options, 0, checks);
  const scheduler::Plan& plan = running.plan();
  const int s = select_steps(plan, options.kernel).front();
  const scheduler::PlanStep& step = plan.steps[static_cast<std::size_t>(s)];
  const ir::Graph& recorded = running.source().graph;
  std::optional<Meaning> meaning = meaning_of(
      plan, s,
      !options.rules.fuse() ? recorded : scheduler::optimised(recorded, wanted_plan(running.source(), options)));
  if (meaning) {
    for (const int v : meaning->reads) {
      if (!is_there(plan, v, s)) {
        meaning.reset();
        break;
      }
    }
  }
  std::vector<int> wanted = step.values;
  if (meaning) wanted.insert(wanted.end(), meaning->reads.begin(), meaning->reads.end());
  const Snapshot shot = snapshot(running, s, wanted, watched, look);

  const codegen::Arena arena = codegen::layout(*step.kernel);
  Repro repro;
  repro.name = step.name, repro.target = plan.target.str();
  repro.origin = "fusejit-dump repro " + options.source + " --kernel " + std::to_string(s);
  repro.scratch_bytes = arena.scratch_bytes, repro.work_bytes = arena.work_bytes;
  repro.moved_bytes = step.read_bytes + step.written_bytes, repro.flop = step.flop;
  repro.tasks = ir::cost(*step.kernel).tasks;
  repro.has_graph = meaning.has_value();
  const std::string code = code_text("asm", *step.kernel, plan.target);
  repro.has_tiles = code.find("ldtilecfg") != std::string::npos;

  const Folder folder(options.output);
  write_buffers(folder, plan, step, shot, repro);
  if (meaning) write_meaning(folder, *meaning, plan, step, shot, repro);
  folder.write("kernel.kir", legend(plan, step, ";") + ir::print(*step.kernel));
  folder.write("kernel.s", code);
  folder.write("kernel.h", repro_header(repro));
  folder.write("main.cpp", kReproMain);
  folder.write("CMakeLists.txt", kReproCmake);
  folder.write("README.md", repro_readme(repro));
  return put(fmt::format("{}: {} with {} buffers{}; see its README.md\n", options.output, step.name,
                         repro.buffers.size(), meaning ? " and its graph" : ""));
}

}  // namespace fusejit::tools
