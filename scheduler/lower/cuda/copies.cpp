#include "scheduler/lower/cuda/copies.h"

#include <algorithm>

#include "ir/kernel/verify/thread_dims.h"
#include "ir/kernel/walk.h"
#include "scheduler/lower/cuda/threads.h"
#include "scheduler/lower/cuda/tuning.h"

namespace fusejit::scheduler::cuda {
namespace {

using ir::ForStmt;

// One round of a loop, with the copies that inner loops of known length may become.
struct Round {
  std::int64_t loaded_words = 0, instructions = 0;  // of all lanes
  bool loads_f64 = false;                           // two registers each
  bool divides = false;                             // an index in which the loop's variable is
};

// Trips of a loop whose number is a constant; else many.
std::int64_t trips_of(const ForStmt& loop) {
  if (loop.low.size() != 1 || loop.high.size() != 1) return kManyTrips;
  const ir::Index trips = loop.high[0] - loop.low[0];
  return trips.is_constant() ? trips.constant() : kManyTrips;
}

class Copies {
 public:
  explicit Copies(ir::Kernel& kernel) : kernel_(kernel), thread_dims_(ir::thread_dims(kernel)) {}

  void run() {
    for (ir::Phase& phase : kernel_.phases) {
      local_words_ = 0, holds_locals_ = false;
      block(phase.body);
    }
  }

 private:
  void block(ir::Block& body) {
    for (ir::Stmt& s : body.statements) {
      if (const auto* local = std::get_if<ir::LocalStmt>(&s.node)) {
        declare(local->memory);
      } else if (auto* loop = std::get_if<ForStmt>(&s.node)) {
        enter(*loop);
      } else if (auto* choice = std::get_if<ir::IfStmt>(&s.node)) {
        block(choice->then_block), block(choice->else_block);
      }
    }
  }

  void declare(ir::MemId id) {
    const ir::Memory& m = memory(id);
    if (m.kind != ir::MemKind::register_local) return;
    const std::int64_t elements = ir::elements_of_thread(m, thread_dims_[static_cast<std::size_t>(id)]);
    holds_locals_ = true, local_words_ += bytes(m.dtype, elements * lanes()) / 4;
  }

  void enter(ForStmt& loop) {
    if (loop.binding == ir::Binding::none) loop.copies = static_cast<int>(copies_of(loop));
    const ForStmt* const outer = vector_;
    if (loop.binding == ir::Binding::vector) vector_ = &loop;
    block(loop.body);
    vector_ = outer;
  }

  // Copies are good for loads that are in flight together. Where one round has enough of them, or where a thread holds
  // a tile and a branch keeps them apart, many copies would only take registers that are not there.
  std::int64_t copies_of(const ForStmt& loop) const {
    bool branches = false, loops = false;
    std::int64_t all = 0;
    ir::for_each_stmt(loop.body, [&](const ir::Stmt& s) {
      branches = branches || std::holds_alternative<ir::IfStmt>(s.node);
      const auto* inner = std::get_if<ForStmt>(&s.node);
      loops = loops || (inner != nullptr && inner->binding == ir::Binding::none);
      const auto* load = std::get_if<ir::LoadStmt>(&s.node);
      if (load && !memory(load->place.memory).is_local()) all += elements(load->place);
    });
    const bool over_tile = local_words_ >= kTileWords;
    if (branches && over_tile) return loops ? 1 : copies_over_tile(loop);
    if (all <= kLoadedElements) return most_copies(loop);
    const std::int64_t words = branches || over_tile || loops ? 0 : words_of_round(loop.body, loop.variable);
    return words == 0 ? 1 : floor_power_of_two(std::clamp<std::int64_t>(kEnoughWords / words, 1, kMostCopies));
  }

  // As many as divide the rounds, so that none is left over.
  std::int64_t copies_over_tile(const ForStmt& loop) const {
    const std::int64_t words = std::max<std::int64_t>(1, words_of_round(loop.body, loop.variable)),
                       most = std::min(kMostCopies, (kWordsOfTile - local_words_) / words), trips = trips_of(loop);
    return words > kEnoughOverTile || trips == kManyTrips || most < 2 ? 1 : divisor_up_to(trips, most);
  }

  // What the loads of one round take; those that are the same in all rounds stand in front of the loop.
  std::int64_t words_of_round(const ir::Block& body, ir::VarId variable) const {
    std::int64_t words = 0;
    for (const ir::Stmt& s : body.statements) {
      const auto* load = std::get_if<ir::LoadStmt>(&s.node);
      if (const auto* loop = std::get_if<ForStmt>(&s.node)) {
        const std::int64_t copies = loop->binding == ir::Binding::vector ? 1 : trips_of(*loop);
        words += std::min(kManyTrips, copies) * words_of_round(loop->body, variable);
      } else if (const auto* choice = std::get_if<ir::IfStmt>(&s.node)) {
        words += words_of_round(choice->then_block, variable) + words_of_round(choice->else_block, variable);
      } else if (load && !memory(load->place.memory).is_local() && changes(load->place, variable)) {
        words += (bytes(memory(load->place.memory).dtype, elements(load->place)) + 3) / 4;
      }
    }
    return words;
  }

  // A short loop, or nest of loops, in front of what a thread keeps in registers is unrolled as a whole, and ptxas
  // moves all loads of it to the front, whatever else the registers hold. Copies of it that keep enough loads in
  // flight; 0: the compiler decides.
  std::int64_t most_copies(const ForStmt& loop) const {
    const std::int64_t trips = trips_of(loop);
    const bool is_nest = std::any_of(loop.body.statements.begin(), loop.body.statements.end(), [](const ir::Stmt& s) {
      const auto* inner = std::get_if<ForStmt>(&s.node);
      return inner && inner->binding == ir::Binding::none;
    });
    if (trips < 2 || !(holds_locals_ || is_nest)) return 0;
    Round round;
    round.divides = divides_by(loop.body, loop.variable);
    add(loop.body, 1, round);
    const std::int64_t most = kShort * (round.loads_f64 ? 2 : 1) * (round.divides ? kOfQuotients : 1);
    if (trips * round.instructions > most || trips * round.loaded_words <= kInFlightWords) return 0;
    return std::max<std::int64_t>(1, kInFlightWords / round.loaded_words);
  }

  void add(const ir::Block& body, std::int64_t copies, Round& round) const {
    for (const ir::Stmt& s : body.statements) {
      const auto* load = std::get_if<ir::LoadStmt>(&s.node);
      const auto* store = std::get_if<ir::StoreStmt>(&s.node);
      if (const auto* loop = std::get_if<ForStmt>(&s.node)) {
        add(loop->body, std::min(kManyTrips, copies * trips_of(*loop)), round);
      } else if (const auto* choice = std::get_if<ir::IfStmt>(&s.node)) {
        add(choice->then_block, copies, round), add(choice->else_block, copies, round);
      } else if (load && !memory(load->place.memory).is_local()) {
        const DType type = kernel_.values[static_cast<std::size_t>(load->result)];
        const std::int64_t words = std::max<std::int64_t>(1, bytes(type, 1) / 4);
        round.loaded_words += copies * words * elements(load->place), round.instructions += copies;
        round.loads_f64 = round.loads_f64 || words > 1;
      } else if (!load && !(store && memory(store->place.memory).is_local())) {  // a local's element is no instruction
        round.instructions += copies * lanes();
      }
    }
  }

  // Some index divides what the variable is in.
  static bool divides_by(const ir::Block& body, ir::VarId variable) {
    bool found = false;
    ir::for_each_stmt(body, [&](const ir::Stmt& s) {
      const auto* load = std::get_if<ir::LoadStmt>(&s.node);
      if (load == nullptr) return;
      for (const ir::Index& index : load->place.index)
        for (const ir::IndexTerm& term : index.terms())
          found = found || (term.atom.inner != nullptr && term.atom.inner->mentions(variable));
    });
    return found;
  }

  static bool changes(const ir::Place& place, ir::VarId variable) {
    return std::any_of(place.index.begin(), place.index.end(), [&](const ir::Index& index) {
      bool gathers = false;
      index.for_each_leaf([&](const ir::IndexAtom& leaf) { gathers = gathers || leaf.kind == ir::AtomKind::value; });
      return gathers || index.mentions(variable);
    });
  }

  // Of an access by all lanes. What is loaded, and then an index, differs between them.
  std::int64_t elements(const ir::Place& place) const {
    bool differs = false;
    for (const ir::Index& index : place.index) {
      index.for_each_leaf([&](const ir::IndexAtom& leaf) {
        differs = differs || leaf.kind == ir::AtomKind::value || (vector_ != nullptr && leaf.id == vector_->variable);
      });
    }
    return differs ? lanes() : 1;
  }
  std::int64_t lanes() const { return vector_ == nullptr ? 1 : vector_->high[0].constant(); }
  const ir::Memory& memory(ir::MemId id) const { return kernel_.memories[static_cast<std::size_t>(id)]; }

  ir::Kernel& kernel_;
  const std::vector<int> thread_dims_;
  std::int64_t local_words_ = 0;     // of those declared so far
  bool holds_locals_ = false;        // there are some
  const ForStmt* vector_ = nullptr;  // the enclosing vector loop
};

}  // namespace

void bound_copies(ir::Kernel& kernel) { Copies(kernel).run(); }

}  // namespace fusejit::scheduler::cuda
