#include "ir/kernel/interp/interp.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "ir/kernel/interp/code.h"
#include "ir/kernel/philox.h"
#include "ir/kernel/walk.h"

namespace fusejit::ir {
namespace {

struct Store {
  std::byte* base = nullptr;
  std::int64_t elements = 0;
  DType dtype = DType::f32;
  std::vector<std::uint64_t> own;     // the memory of works and locals
  std::vector<std::uint8_t> defined;  // per element; empty: always defined
  std::vector<std::uint8_t> unread;   // per element: stored here and not loaded since; empty: not asked
  // Per element: loaded, stored in this phase; empty: not asked.
  std::vector<std::uint8_t> loaded, stored;
};

template <class T>
Word load_as(const std::byte* base, std::int64_t i) {
  T v;
  std::memcpy(&v, base + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
  return v;
}
template <class T>
void store_as(std::byte* base, std::int64_t i, Word w) {
  const T v = static_cast<T>(w);
  std::memcpy(base + static_cast<std::size_t>(i) * sizeof(T), &v, sizeof(T));
}

class Machine {
 public:
  Machine(const Kernel& kernel, std::span<void* const> buffers, std::span<const Scalar> scalars,
          const InterpretOptions& options)
      : k_(kernel), options_(options), code_(compile_for_interpreter(kernel)), random_(options.seed * 2 + 1) {
    std::size_t next = 0;
    stores_.resize(k_.memories.size());
    for (std::size_t i = 0; i < stores_.size(); ++i) prepare(stores_[i], k_.memories[i]);
    for (const KernelParam& p : k_.params) {
      if (p.memory < 0) continue;
      FJ_ASSERT(next < buffers.size(), "kernel {}: {} buffers are too few", k_.name, buffers.size());
      stores_[static_cast<std::size_t>(p.memory)].base = static_cast<std::byte*>(buffers[next++]);
    }
    FJ_ASSERT(next == buffers.size() && scalars.size() == code_.scalars.size(),
              "kernel {}: {} buffers and {} scalars were given for {} and {}", k_.name, buffers.size(), scalars.size(),
              next, code_.scalars.size());
    for (std::size_t i = 0; i < scalars.size(); ++i) code_.slots[code_.scalars[i]] = scalars[i].bits;
  }

  void run() {
    for (std::size_t phase = 0; phase < code_.phases.size(); ++phase) {
      run(code_.phases[phase]);
      if (options_.traffic) note_traffic(static_cast<int>(phase));
    }
    if (!options_.check_poison) return;
    for (std::size_t i = 0; i < stores_.size(); ++i) {
      if (k_.memories[i].kind != MemKind::write) continue;
      const auto at = std::find(stores_[i].defined.begin(), stores_[i].defined.end(), 0);
      FJ_ASSERT(at == stores_[i].defined.end(), "kernel {}: V10: element {} of buffer {} is never stored", k_.name,
                at - stores_[i].defined.begin(), i);
    }
  }

 private:
  void prepare(Store& store, const Memory& memory) {
    store.elements = memory.elements(), store.dtype = memory.dtype;
    const bool parameter =
        memory.kind == MemKind::read || memory.kind == MemKind::write || memory.kind == MemKind::update;
    if (!parameter) {
      store.own.resize(static_cast<std::size_t>(bytes(memory.dtype, store.elements) + 7) / 8);
      store.base = reinterpret_cast<std::byte*>(store.own.data());
    }
    if (options_.check_poison && memory.kind != MemKind::read && memory.kind != MemKind::update)
      store.defined.resize(static_cast<std::size_t>(store.elements));
    if (options_.check_poison && memory.kind != MemKind::read && !memory.is_local())
      store.unread.resize(static_cast<std::size_t>(store.elements));
    if (options_.traffic && !memory.is_local()) {
      store.loaded.resize(static_cast<std::size_t>(store.elements));
      store.stored.resize(static_cast<std::size_t>(store.elements));
    }
  }

  void note_traffic(int phase) {
    for (std::size_t i = 0; i < stores_.size(); ++i) {
      Store& s = stores_[i];
      const std::int64_t loaded = std::count(s.loaded.begin(), s.loaded.end(), 1);
      const std::int64_t stored = std::count(s.stored.begin(), s.stored.end(), 1);
      if (loaded + stored > 0)
        options_.traffic->push_back({static_cast<MemId>(i), phase, bytes(s.dtype, loaded), bytes(s.dtype, stored)});
      std::fill(s.loaded.begin(), s.loaded.end(), 0);
      std::fill(s.stored.begin(), s.stored.end(), 0);
    }
  }

  // Wraps, where only an IndexStmt of a kernel that is not verified can reach.
  std::int64_t evaluate(std::uint32_t id) const {
    const Affine& a = code_.affines[id];
    const FlatTerm* t = code_.terms.data() + a.first;
    const FlatTerm* const end = t + a.count;
    auto total = static_cast<Word>(a.constant);
    if (a.plain) {
      for (; t != end; ++t) total += static_cast<Word>(t->coefficient) * code_.slots[t->slot];
    } else {
      for (; t != end; ++t) total += static_cast<Word>(t->coefficient) * static_cast<Word>(term(*t));
    }
    return static_cast<std::int64_t>(total);
  }
  std::int64_t term(const FlatTerm& t) const {
    if (t.kind == TermKind::slot) return static_cast<std::int64_t>(code_.slots[t.slot]);
    if (t.kind == TermKind::slot_i32) return static_cast<std::int32_t>(code_.slots[t.slot]);
    const std::int64_t inner = evaluate(t.inner), r = inner % t.divisor;
    if (t.kind == TermKind::remainder) return r < 0 ? r + t.divisor : r;
    return inner / t.divisor - (r < 0 ? 1 : 0);
  }
  std::int64_t address(const Store& store, const Instruction& i) const {
    const std::int64_t at = evaluate(i.extra);
    FJ_ASSERT(at >= 0 && at < store.elements, "kernel {}: V3: element {} of memory {} with {} elements", k_.name, at,
              i.memory, store.elements);
    return at;
  }

  void run(const Sequence& sequence) {
    for (const Instruction& i : sequence) {
      switch (i.action) {
        case Action::scalar: {
          Word* s = code_.slots.data();
          s[i.result] = i.fn(s[i.args[0]], s[i.args[1]], s[i.args[2]]);
          break;
        }
        case Action::load:
          load(i);
          break;
        case Action::store:
          store(i);
          break;
        case Action::loop:
          loop(*code_.loops[i.extra]);
          break;
        case Action::branch:
          branch(*code_.branches[i.extra]);
          break;
        case Action::local:
          declare(i.memory);
          break;
        case Action::index:
          code_.slots[i.result] = cast(Scalar::of(evaluate(i.extra)), static_cast<DType>(i.memory)).bits;
          break;
        case Action::philox: {
          const auto value = [&](int a) { return static_cast<std::int64_t>(code_.slots[i.args[a]]); };
          const auto words = philox(value(0), value(1), value(2));
          for (std::size_t w = 0; w < 4; ++w) code_.slots[code_.generics[i.extra].args[w]] = words[w];
          break;
        }
        case Action::generic:
          generic(code_.generics[i.extra], i.result);
          break;
      }
    }
  }

  void load(const Instruction& i) {
    Store& s = stores_[static_cast<std::size_t>(i.memory)];
    const std::int64_t at = address(s, i);
    if (!s.unread.empty()) s.unread[static_cast<std::size_t>(at)] = 0;
    if (!s.loaded.empty()) s.loaded[static_cast<std::size_t>(at)] = 1;
    if (!s.defined.empty() && !s.defined[static_cast<std::size_t>(at)])
      throw InternalError(
          fmt::format("kernel {}: V10: element {} of memory {} is read before it is stored", k_.name, at, i.memory));
    Word& result = code_.slots[i.result];
    switch (bits(s.dtype)) {
      case 64:
        result = load_as<std::uint64_t>(s.base, at);
        break;
      case 32:
        result = load_as<std::uint32_t>(s.base, at);
        break;
      case 16:
        result = load_as<std::uint16_t>(s.base, at);
        break;
      default:
        result = load_element(s.base, s.dtype, at).bits;
        break;
    }
  }
  void store(const Instruction& i) {
    Store& s = stores_[static_cast<std::size_t>(i.memory)];
    const std::int64_t at = address(s, i);
    put(s, at, code_.slots[i.args[0]]);
    if (!s.defined.empty()) s.defined[static_cast<std::size_t>(at)] = 1;
    if (!s.stored.empty()) s.stored[static_cast<std::size_t>(at)] = 1;
    if (s.unread.empty()) return;
    if (s.unread[static_cast<std::size_t>(at)])
      throw InternalError(fmt::format(
          "kernel {}: V11: element {} of memory {} is stored over a store that nothing read", k_.name, at, i.memory));
    s.unread[static_cast<std::size_t>(at)] = 1;
  }
  static void put(Store& s, std::int64_t at, Word word) {
    switch (bits(s.dtype)) {
      case 64:
        store_as<std::uint64_t>(s.base, at, word);
        break;
      case 32:
        store_as<std::uint32_t>(s.base, at, word);
        break;
      case 16:
        store_as<std::uint16_t>(s.base, at, word);
        break;
      default:
        store_element(s.base, s.dtype, at, {s.dtype, word});
        break;
    }
  }
  void declare(MemId id) {
    const Memory& memory = k_.memories[static_cast<std::size_t>(id)];
    Store& s = stores_[static_cast<std::size_t>(id)];
    std::fill(s.defined.begin(), s.defined.end(), memory.has_init ? 1 : 0);
    if (!memory.has_init) return;
    for (std::int64_t e = 0; e < s.elements; ++e) put(s, e, memory.init.bits);
  }
  void generic(const GenericOp& g, Slot result) {
    Scalar args[3];
    for (std::size_t i = 0; i < g.args.size(); ++i) args[i] = {g.types[i], code_.slots[g.args[i]]};
    Word word = 0;
    if (g.op == Op::cast) {
      word = cast(args[0], g.result).bits;
    } else {
      const EvalFn eval = op_def(g.op).eval;
      FJ_ASSERT(eval, "V6: {} has no meaning in a kernel", name(g.op));
      word = eval(std::span(args, g.args.size()), Attrs{}).bits;
    }
    const std::int64_t width = g.result == DType::boolean ? 1 : bits(g.result);
    code_.slots[result] = width == 64 ? word : word & ((Word{1} << width) - 1);
  }

  void branch(BranchCode& b) {
    bool taken = !b.has_condition || code_.slots[b.condition] != 0;
    for (std::size_t i = 0; taken && i < b.tests.size(); ++i) {
      const std::int64_t left = evaluate(b.tests[i].affine), right = b.tests[i].right;
      const CompareKind kind = b.tests[i].kind;
      taken = kind == CompareKind::lt ? left < right : kind == CompareKind::ge ? left >= right : left == right;
    }
    run(taken ? b.then_code : b.else_code);
    const std::vector<Slot>& yields = taken ? b.then_yields : b.else_yields;
    for (std::size_t i = 0; i < yields.size(); ++i) code_.slots[b.results[i]] = code_.slots[yields[i]];
  }

  void loop(LoopCode& l) {
    std::int64_t low = evaluate(l.low[0]), high = evaluate(l.high[0]);
    for (std::size_t i = 1; i < l.low.size(); ++i) low = std::max(low, evaluate(l.low[i]));
    for (std::size_t i = 1; i < l.high.size(); ++i) high = std::min(high, evaluate(l.high[i]));
    const std::int64_t extent = std::max<std::int64_t>(0, high - low);
    if (l.tree && !l.parts.empty()) return reduce_tree(l, low, extent);
    if (l.parts.empty()) {
      if (l.any_order && options_.order != TaskOrder::ascending) {
        order(l, extent);
        for (std::int64_t i = 0; i < extent; ++i) iterate(l, low + l.permutation[static_cast<std::size_t>(i)]);
      } else {
        for (std::int64_t v = low; v < high; ++v) iterate(l, v);
      }
      return;
    }
    const std::size_t n = l.results.size();
    Word accumulators[64];
    Word yielded[64];
    FJ_ASSERT(n <= 64, "V6: a reduce has {} components", n);
    for (const Reduction& p : l.parts)
      for (int c = 0; c < components(p.combiner); ++c) {
        const std::size_t at = p.first + static_cast<std::size_t>(c);
        accumulators[at] = identity(p.combiner, c, l.types[at]).bits;
      }
    for (std::int64_t v = low; v < high; ++v) {
      iterate(l, v);
      for (std::size_t c = 0; c < n; ++c) yielded[c] = code_.slots[l.yields[c]];
      for (const Reduction& p : l.parts) combine_part(l, p, accumulators, yielded);
    }
    for (std::size_t c = 0; c < n; ++c) code_.slots[l.results[c]] = accumulators[c];
  }
  void iterate(LoopCode& l, std::int64_t v) {
    code_.slots[l.variable] = static_cast<Word>(v);
    run(l.body);
  }

  void reduce_tree(LoopCode& l, std::int64_t low, std::int64_t extent) {
    FJ_ASSERT(extent > 0 && (extent & (extent - 1)) == 0, "V4: a reduce over {} lanes", extent);
    const std::size_t n = l.results.size();
    order(l, extent);
    l.values.resize(static_cast<std::size_t>(extent) * n);
    for (std::int64_t i = 0; i < extent; ++i) {
      const std::int64_t lane = l.permutation[static_cast<std::size_t>(i)];
      iterate(l, low + lane);
      for (std::size_t c = 0; c < n; ++c) l.values[static_cast<std::size_t>(lane) * n + c] = code_.slots[l.yields[c]];
    }
    const std::int64_t run = std::min<std::int64_t>(extent, 32);
    for (std::int64_t start = 0; start < extent; start += run) tree(l, start, 1, run);
    if (extent > run) tree(l, 0, run, extent / run);
    for (std::size_t c = 0; c < n; ++c) code_.slots[l.results[c]] = l.values[c];
  }
  // tree(count) over the lanes start, start + stride, ...
  static void tree(LoopCode& l, std::int64_t start, std::int64_t stride, std::int64_t count) {
    const std::size_t n = l.results.size();
    const auto lane = [&](std::int64_t i) {
      return l.values.data() + static_cast<std::size_t>(start + i * stride) * n;
    };
    for (std::int64_t d = count / 2; d > 0; d /= 2)
      for (std::int64_t i = 0; i < d; ++i)
        for (const Reduction& p : l.parts) combine_part(l, p, lane(i), lane(i + d));
  }
  static void combine_part(const LoopCode& l, const Reduction& p, Word* into, const Word* from) {
    if (p.fn) {
      into[p.first] = p.fn(into[p.first], from[p.first], 0);
    } else {
      combine(p.combiner, l.types.data() + p.first, into + p.first, from + p.first);
    }
  }

  void order(LoopCode& l, std::int64_t extent) {
    std::vector<std::int64_t>& p = l.permutation;
    if (static_cast<std::int64_t>(p.size()) != extent || options_.order != TaskOrder::ascending) {
      p.resize(static_cast<std::size_t>(extent));
      std::iota(p.begin(), p.end(), 0);
    }
    if (options_.order == TaskOrder::descending) std::reverse(p.begin(), p.end());
    if (options_.order != TaskOrder::shuffled) return;
    for (std::size_t i = p.size(); i > 1; --i) {
      random_ = random_ * 6364136223846793005ull + 1442695040888963407ull;
      std::swap(p[i - 1], p[(random_ >> 33) % i]);
    }
  }

  const Kernel& k_;
  const InterpretOptions options_;
  Code code_;
  std::vector<Store> stores_;
  std::uint64_t random_;
};

}  // namespace

void interpret(const Kernel& kernel, std::span<void* const> buffers, std::span<const Scalar> scalars,
               const InterpretOptions& options) {
  Machine(kernel, buffers, scalars, options).run();
}

}  // namespace fusejit::ir
