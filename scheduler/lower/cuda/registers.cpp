#include "scheduler/lower/cuda/registers.h"

#include "ir/kernel/verify/thread_dims.h"
#include "ir/kernel/walk.h"
#include "scheduler/lower/cuda/tuning.h"

namespace fusejit::scheduler::cuda {
namespace {

using ir::ForStmt;

// Words of 32 bits that a thread of one phase holds over its loops.
class Held {
 public:
  explicit Held(const ir::Kernel& kernel) : kernel_(kernel), thread_dims_(ir::thread_dims(kernel)) {}

  int budget(const ir::Phase& phase) {
    block(phase.body, 1);
    const bool is_large = tree_words_ > 0 || local_words_ >= kTileWords;
    const bool is_wide = loaded_words_ + 2 * static_cast<std::int64_t>(buffers_.size()) > kManyAtOnce;
    std::int64_t threads = 1;
    for (const std::int64_t extent : threads_) threads *= extent;
    if (!is_large && !moves_f64_ && !is_wide) return threads < kSmallBlock ? kFewOdd : 0;
    const bool waits = tree_words_ == 0 || (lane_trees_ && tree_words_ <= kTreeWords);
    const bool few = waits && !moves_f64_ && !calls_ && local_words_ <= kFewWords && threads > 128;
    int registers = !few ? kMany : threads < 256 ? kFewOdd : kFew;
    while (ir::blocks_that_fit(threads, registers) == 0) registers /= 2;
    return registers;
  }

 private:
  void block(const ir::Block& body, std::int64_t lanes) {
    for (const ir::Stmt& s : body.statements) {
      if (const auto* local = std::get_if<ir::LocalStmt>(&s.node)) {
        const ir::Memory& m = memory(local->memory);
        const int of_threads = thread_dims_[static_cast<std::size_t>(local->memory)];
        if (m.kind == ir::MemKind::register_local)
          local_words_ += bytes(m.dtype, ir::elements_of_thread(m, of_threads) * lanes) / 4;
      } else if (const auto* loop = std::get_if<ForStmt>(&s.node)) {
        enter(*loop, lanes);
      } else if (const auto* load = std::get_if<ir::LoadStmt>(&s.node)) {
        moves_f64_ = moves_f64_ || is_f64_buffer(load->place);
        const ir::Memory& m = memory(load->place.memory);
        if (m.is_local()) continue;
        buffers_.insert(load->place.memory);
        loaded_words_ += (bytes(m.dtype, lanes) + 3) / 4;
      } else if (const auto* def = std::get_if<ir::DefStmt>(&s.node)) {
        calls_ = calls_ || ir::op_def(def->op).ulp > 0;
      } else if (const auto* store = std::get_if<ir::StoreStmt>(&s.node)) {
        moves_f64_ = moves_f64_ || is_f64_buffer(store->place);
      } else if (const auto* choice = std::get_if<ir::IfStmt>(&s.node)) {
        block(choice->then_block, lanes), block(choice->else_block, lanes);
      }
    }
  }

  void enter(const ForStmt& loop, std::int64_t lanes) {
    if (loop.binding == ir::Binding::vector) return block(loop.body, loop.high[0].constant());
    if (ir::is_block_axis(loop.binding)) {
      const std::int64_t extent = loop.high[0].constant();
      threads_[static_cast<std::size_t>(loop.binding) - static_cast<std::size_t>(ir::Binding::block_x)] = extent;
      if (extent > 1) {
        for (const ir::ValueId id : loop.results)
          tree_words_ += lanes * bytes(kernel_.values[static_cast<std::size_t>(id)], 1) / 4;
        lane_trees_ = lane_trees_ || (!loop.results.empty() && lanes > 1);
      }
    }
    block(loop.body, lanes);
  }

  const ir::Memory& memory(ir::MemId id) const { return kernel_.memories[static_cast<std::size_t>(id)]; }
  bool is_f64_buffer(const ir::Place& place) const {
    const ir::Memory& m = memory(place.memory);
    return m.dtype == DType::f64 && !m.is_local() && m.kind != ir::MemKind::work;
  }

  const ir::Kernel& kernel_;
  const std::vector<int> thread_dims_;
  std::int64_t local_words_ = 0, tree_words_ = 0, loaded_words_ = 0;
  std::set<ir::MemId> buffers_;  // that are read
  std::int64_t threads_[3] = {1, 1, 1};
  bool lane_trees_ = false, moves_f64_ = false;
  bool calls_ = false;  // a function, which takes registers of its own
};

}  // namespace

void bound_registers(ir::KernelBuilder& builder, const std::set<std::size_t>& said) {
  const ir::Kernel& kernel = builder.written();
  for (std::size_t p = 0; p < kernel.phases.size(); ++p)
    if (!said.contains(p)) builder.bound_registers(p, Held(kernel).budget(kernel.phases[p]));
}

}  // namespace fusejit::scheduler::cuda
