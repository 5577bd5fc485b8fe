// Kernels as launches: which phases share one, the entry's signature, and what stands around the body.
#include "codegen/cuda/emit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>

#include "codegen/cuda/barriers.h"
#include "codegen/cuda/emitter.h"
#include "codegen/cuda/text.h"
#include "ir/base/check.h"
#include "ir/kernel/verify/verify.h"

namespace fusejit::codegen::cuda {
namespace {

constexpr std::int64_t kStaticShared = 48 << 10;
constexpr std::int64_t kMostShared = 99 << 10;  // what every device from sm_80 on can give a block

struct PhaseShape {
  const ir::Phase* phase;
  Extents grid = {1, 1, 1}, block = {1, 1, 1};
  std::int64_t blocks() const { return grid[0] * grid[1] * grid[2]; }
  std::int64_t threads() const { return block[0] * block[1] * block[2]; }
};

std::size_t axis_of(ir::Binding binding) {
  const ir::Binding first = ir::is_grid_axis(binding) ? ir::Binding::grid_x : ir::Binding::block_x;
  return static_cast<std::size_t>(binding) - static_cast<std::size_t>(first);
}

PhaseShape shape_of(const ir::Phase& phase) {
  PhaseShape shape{&phase};
  ir::for_each_stmt(phase.body, [&](const ir::Stmt& s) {
    const auto* loop = std::get_if<ir::ForStmt>(&s.node);
    if (!loop) return;
    if (ir::is_grid_axis(loop->binding)) shape.grid[axis_of(loop->binding)] = loop->high[0].constant();
    if (ir::is_block_axis(loop->binding)) shape.block[axis_of(loop->binding)] = loop->high[0].constant();
  });
  return shape;
}

void check_limits(const ir::Kernel& kernel, const PhaseShape& shape) {
  constexpr std::int64_t kMostX = std::numeric_limits<std::int32_t>::max(), kMostYZ = 65535;
  if (shape.grid[0] > kMostX || shape.grid[1] > kMostYZ || shape.grid[2] > kMostYZ || shape.blocks() > kMostX) {
    throw UnsupportedError(fmt::format("kernel {}: a grid of {} x {} x {} blocks; x may have 2147483647, y and z 65535",
                                       kernel.name, shape.grid[0], shape.grid[1], shape.grid[2]));
  }
  if (shape.block[2] > 64)
    throw UnsupportedError(fmt::format("kernel {}: block.z has {} threads, at most 64", kernel.name, shape.block[2]));
}

// A phase joins the launch before it if it is one block of no more threads than the phase before.
std::vector<std::vector<PhaseShape>> launches_of(const ir::Kernel& kernel) {
  std::vector<std::vector<PhaseShape>> launches;
  for (const ir::Phase& phase : kernel.phases) {
    const PhaseShape shape = shape_of(phase);
    check_limits(kernel, shape);
    if (shape.blocks() == 0) continue;
    const bool joins = !launches.empty() && shape.blocks() == 1 && shape.threads() <= launches.back().back().threads();
    if (joins) {
      launches.back().push_back(shape);
    } else {
      launches.push_back({shape});
    }
  }
  return launches;
}

std::string offset(std::string_view base, std::int64_t elements) {
  return elements == 0 ? std::string(base) : fmt::format("{} + {}", base, elements);
}

std::string identifier(std::string_view name) {
  std::string text = "kernel_";
  for (const char c : name) text += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return text;
}

// This thread's place in a block, from its number where the launch has another shape.
std::array<std::string, 3> coordinates(const PhaseShape& phase, const PhaseShape& launch) {
  if (phase.block == launch.block) return {"threadIdx.x", "threadIdx.y", "threadIdx.z"};
  const auto& [x, y, z] = phase.block;
  return {y * z == 1 ? "t" : fmt::format("t % {}", x),
          z == 1 ? fmt::format("t / {}", x) : fmt::format("t / {} % {}", x, y), fmt::format("t / {}", x * y)};
}

void emit_phase(Emitter& e, const PhaseShape& shape, const PhaseShape& launch) {
  e.block = shape.block;
  e.tails = lone_tails(e.kernel, *shape.phase);
  e.barriers = barriers(e.kernel, *shape.phase, e.tails);
  e.coordinates = coordinates(shape, launch);
  e.uses_thread = e.uses_thread || shape.block != launch.block;
  name_quotients(e, *shape.phase);
  const ir::Block* body = &shape.phase->body;
  const bool grid_is_launch = shape.phase == launch.phase;
  for (;;) {
    const auto* loop = body->statements.size() == 1 ? std::get_if<ir::ForStmt>(&body->statements[0].node) : nullptr;
    if (!loop || !ir::is_grid_axis(loop->binding)) break;
    e.ranges.enter(*loop);
    e.out.line(fmt::format("const int {} = {};", variable_name(e, loop->variable),
                           grid_is_launch ? fmt::format("blockIdx.{}", "xyz"[axis_of(loop->binding)]) : "0"));
    define_quotients(e, loop->variable);
    body = &loop->body;
  }
  emit_block(e, *body);
}

// All phases of a launch.
void emit_phases(Emitter& e, const std::vector<PhaseShape>& phases) {
  const PhaseShape& launch = phases[0];
  std::int64_t threads = launch.threads();
  for (std::size_t i = 0; i < phases.size(); ++i) {
    if (i == 1 && launch.blocks() > 1) {
      e.uses_thread = true;
      e.out.line(fmt::format("if (!fj_last_block(t, counter, {}u)) return;", launch.blocks()));
    } else if (i > 0) {
      e.out.line("__syncthreads();");
    }
    if (phases[i].threads() < threads) {
      e.uses_thread = true;
      threads = phases[i].threads();
      e.out.line(fmt::format("if (t >= {}) return;", threads));
    }
    emit_phase(e, phases[i], launch);
  }
}

// Parameters of a kernel do not overlap. To say so of one that is written too lets the next loads pass its stores; but
// where threads exchange elements through it, the compiler would carry accesses across their barriers. So all accesses
// must be to one place, and where there are loads, each thread's own: in one block loop over every axis.
bool is_restrict(const Emitter& e, const std::vector<PhaseShape>& phases, ir::MemId memory) {
  if (e.kernel.memories[static_cast<std::size_t>(memory)].kind == ir::MemKind::read) return true;
  const ir::Place* only = nullptr;
  const ir::ForStmt* only_loop = nullptr;
  bool same = true, own = true, loaded = false;
  std::map<const ir::Phase*, Tails> tails;
  for (const PhaseShape& phase : phases) tails[phase.phase] = lone_tails(e.kernel, *phase.phase);
  ir::for_each_with_path(e.kernel, [&](const ir::Stmt& s, const ir::Path& path, std::size_t number) {
    const ir::Place* place = ir::touched(s);
    const auto phase = std::find_if(phases.begin(), phases.end(),
                                    [&](const PhaseShape& p) { return p.phase == &e.kernel.phases[number]; });
    if (!place || place->memory != memory || phase == phases.end()) return;
    std::int64_t threads = 1;
    const ir::ForStmt* loop = nullptr;
    for (const ir::Enclosing& enclosing : path) {
      if (!enclosing.loop || !ir::is_block_axis(enclosing.loop->binding)) continue;
      loop = enclosing.loop;
      threads *= loop->high[0].constant();
    }
    const bool load = std::holds_alternative<ir::LoadStmt>(s.node);
    const bool alone = threads == phase->threads() || tails.at(phase->phase).statements.contains(&s);
    same = same && (!only || only->index == place->index);
    own = own && (alone || !load) && (!only || only_loop == loop);
    loaded = loaded || load;
    only = place, only_loop = loop;
  });
  return same && (own || !loaded);
}

// "head first, second) {", in lines that fit a screen.
std::string wrapped(std::string head, const std::vector<std::string>& list) {
  constexpr std::size_t kColumns = 120;
  if (list.empty()) return head + ") {";
  std::size_t start = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string item = list[i] + (i + 1 < list.size() ? "," : ") {");
    if (i > 0 && head.size() - start + 1 + item.size() > kColumns) {
      start = head.size() + 1;
      head += "\n   ";
    }
    if (i > 0) head += ' ';
    head += item;
  }
  return head;
}

std::vector<std::string> parameter_list(const Emitter& e, const std::vector<PhaseShape>& phases, bool work,
                                        bool counter) {
  std::vector<std::string> list;
  for (const ir::KernelParam& p : e.kernel.params) {
    if (p.memory < 0) continue;
    const ir::Memory& m = e.kernel.memories[static_cast<std::size_t>(p.memory)];
    const bool read = m.kind == ir::MemKind::read;
    list.push_back(fmt::format("{}{}*{} {}", read ? "const " : "", type_name(m.dtype),
                               is_restrict(e, phases, p.memory) ? " __restrict__" : "", memory_name(e, p.memory)));
  }
  for (const ir::KernelParam& p : e.kernel.params)
    if (p.memory < 0) list.push_back(fmt::format("{} {}", type_name(dtype_of(e, p.scalar)), name(e, p.scalar)));
  if (work) list.push_back("unsigned char* work");
  if (counter) list.push_back("unsigned* counter");
  return list;
}

void work_pointers(const Emitter& e, ir::Writer& out) {
  for (ir::MemId id : e.kernel.works) {
    const ir::Memory& m = e.kernel.memories[static_cast<std::size_t>(id)];
    out.line(fmt::format("{0}* const {1} = reinterpret_cast<{0}*>({2});", type_name(m.dtype), memory_name(e, id),
                         offset("work", e.facts.arena.offset[static_cast<std::size_t>(id)])));
  }
}

// Declares scratch and the pool; returns the bytes of dynamic shared memory, if static memory does not hold them.
std::int64_t shared_memory(const Emitter& e, ir::Writer& out) {
  const auto padded = [&](ir::MemId id) {
    const ir::Memory& m = e.kernel.memories[static_cast<std::size_t>(id)];
    return (bytes(m.dtype, m.elements()) + 15) / 16 * 16;
  };
  std::int64_t total = e.pool_bytes + 16;  // fj_last_block
  for (ir::MemId id : e.shared) total += padded(id);
  if (total > kMostShared)
    throw UnsupportedError(fmt::format("kernel {}: {} bytes of shared memory; at most {} are there for a block",
                                       e.kernel.name, total, kMostShared));
  const bool dynamic = total > kStaticShared;
  std::int64_t used = 0;
  if (dynamic) out.line("FJ_DYNAMIC_SHARED(shared);");
  const auto array = [&](std::string_view type, const std::string& id, std::int64_t count, std::int64_t size) {
    if (dynamic) {
      out.line(fmt::format("{0}* const {1} = reinterpret_cast<{0}*>({2});", type, id, offset("shared", used)));
    } else {
      out.line(fmt::format("__shared__ __align__(16) {} {}[{}];", type, id, count));
    }
    used += size;
  };
  for (ir::MemId id : e.shared) {
    const ir::Memory& m = e.kernel.memories[static_cast<std::size_t>(id)];
    array(type_name(m.dtype), memory_name(e, id), bytes(m.dtype, m.elements()) / bytes(m.dtype, 1), padded(id));
  }
  if (e.pool_bytes > 0) array("unsigned char", "pool", e.pool_bytes, e.pool_bytes);
  return dynamic ? used : 0;
}

std::string thread_number(const Extents& block) {
  std::string text = "threadIdx.x";
  if (block[1] > 1 || block[2] > 1) text += fmt::format(" + {} * threadIdx.y", block[0]);
  if (block[2] > 1) text += fmt::format(" + {} * threadIdx.z", block[0] * block[1]);
  return text;
}

// Threads and, where a phase says what a thread may take, the blocks that share a multiprocessor: left to itself, ptxas
// saves registers for one block more and spills. Of more blocks than a multiprocessor has room for (16 in sm_86,
// elsewhere more) ptxas warns, and takes none of it.
std::string launch_bounds(const std::vector<PhaseShape>& phases) {
  constexpr std::int64_t kMostBlocks = 16;
  const std::int64_t threads = phases[0].threads();
  // Those that the last block runs alone count where the first one says nothing.
  const auto says =
      std::find_if(phases.begin(), phases.end(), [](const PhaseShape& s) { return s.phase->registers > 0; });
  const int registers = says == phases.end() ? 0 : says->phase->registers;
  if (registers == 0) return fmt::format("{}", threads);
  return fmt::format("{}, {}", threads,
                     std::clamp<std::int64_t>(ir::blocks_that_fit(threads, registers), 1, kMostBlocks));
}

void comment(const ir::Kernel& kernel, std::string& out) {
  const std::string text = ir::print(kernel);
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    out += "// " + text.substr(start, end - start) + "\n";
    start = end == std::string::npos ? text.size() : end + 1;
  }
}

}  // namespace

Emitter::Emitter(const KernelFacts& facts) : facts(facts), kernel(facts.kernel) {
  wide.resize(static_cast<std::size_t>(kernel.variable_count));
  array.resize(kernel.values.size());
  lane_rows.resize(kernel.memories.size());
  thread_values = ir::varying_values(kernel);
}

std::string name(const Emitter& e, ir::ValueId id) {
  const std::string text = e.facts.names.value(id);
  return fmt::format("{}{}", std::isdigit(static_cast<unsigned char>(text[1])) != 0 ? "v" : "", text.substr(1));
}
std::string variable_name(const Emitter& e, ir::VarId id) { return e.facts.names.variable(id).substr(1); }

std::string text(const Emitter& e, const ir::Arg& arg) {
  if (arg.is_literal()) return literal(arg.literal);
  const std::string id = name(e, arg.value);
  const auto gathered = e.gathered.find(arg.value);
  if (gathered != e.gathered.end()) return fmt::format("{}[{}]", id, variable_name(e, gathered->second));
  if (!e.array[static_cast<std::size_t>(arg.value)]) return id;
  return fmt::format("{}[{}]", id, e.in_lane ? variable_name(e, e.vector->variable) : "0");
}

DType dtype_of(const Emitter& e, const ir::Arg& arg) {
  return arg.is_literal() ? arg.literal.dtype : e.kernel.values[static_cast<std::size_t>(arg.value)];
}

bool varies(const Emitter& e, const ir::Arg& arg) {
  return !arg.is_literal() && e.facts.lanes.value[static_cast<std::size_t>(arg.value)];
}

void declare(Emitter& e, ir::ValueId value) {
  const std::string_view type = type_name(dtype_of(e, value));
  if (e.array[static_cast<std::size_t>(value)]) {
    e.out.line(fmt::format("fj_lanes<{}, {}> {};", type, e.lane_count(), name(e, value)));
  } else {
    e.out.line(fmt::format("{} {};", type, name(e, value)));
  }
}

void define(Emitter& e, ir::ValueId value, const std::string& expression) {
  if (e.array[static_cast<std::size_t>(value)]) {
    e.out.line(fmt::format("{} = {};", text(e, value), expression));
  } else {
    e.out.line(fmt::format("const {} {} = {};", type_name(dtype_of(e, value)), name(e, value), expression));
  }
}

CudaSource emit(const ir::Kernel& original, std::string_view given_name, std::span<const ParameterName> parameters) {
  FJ_ASSERT(original.isa == Isa::cuda, "kernel {} is written for {}, not for cuda", original.name, name(original.isa));
  const ir::Kernel kernel = ir::renumbered(original);
  const KernelFacts facts(kernel);
  const std::string entry = identifier(given_name.empty() ? std::string_view(kernel.name) : given_name);
  const std::vector<std::vector<PhaseShape>> launches = launches_of(kernel);
  CudaSource source;
  for (const ir::KernelParam& p : kernel.params) {
    source.buffers += p.memory >= 0 ? 1 : 0;
    if (p.memory < 0) source.scalars.push_back(kernel.values[static_cast<std::size_t>(p.scalar)]);
  }
  source.work_bytes = facts.arena.work_bytes;
  // Launches come one after the other and leave it zero: one counter is enough.
  for (const auto& phases : launches)
    if (phases.size() > 1 && phases[0].blocks() > 1) source.counter_bytes = 4;
  comment(kernel, source.text);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    Emitter e(facts);
    name_parameters(e, parameters);
    e.out.open("{");
    emit_phases(e, launches[i]);
    e.out.close();
    const PhaseShape& shape = launches[i][0];
    CudaLaunch launch{launches.size() == 1 ? entry : fmt::format("{}_launch{}", entry, i + 1), shape.grid, shape.block};
    ir::Writer head;
    head.open(wrapped(
        fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}(", launch_bounds(launches[i]), launch.entry),
        parameter_list(e, launches[i], source.work_bytes > 0, source.counter_bytes > 0)));
    work_pointers(e, head);
    launch.shared_bytes = shared_memory(e, head);
    const std::string body = std::move(e.out).str().substr(2);  // without its own "{"
    declare_strides(e, body, head);
    if (e.uses_thread) head.line(fmt::format("const int t = {};", thread_number(shape.block)));
    source.text += std::move(head).str() + body;
    source.launches.push_back(std::move(launch));
  }
  return source;
}

std::string program(std::span<const CudaSource> sources) {
  std::string text(prelude());
  for (const CudaSource& source : sources) text += "\n" + source.text;
  return text;
}

}  // namespace fusejit::codegen::cuda
