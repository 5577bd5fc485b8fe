// candidates: schedules for a contraction, or for a group without one, best first. The only place where it is decided
// how something is computed; all of it follows from the contraction, the target's nominal numbers and what is fused to
// it.
#pragma once

#include <vector>

#include "scheduler/schedule/domain.h"

namespace fusejit::scheduler {

// What is computed beside the contraction.
struct FusedWork {
  DType compute = DType::f32;
  bool sums = false;               // the epilogue reduces over the results
  std::int64_t result_bytes = 0;   // of all contractions of the anchor
  std::int64_t elements_read = 0;  // values that the epilogue reads element by element
  // The operand is not in memory: what it is computed from is read in its place, and a panel has each element computed
  // once in a task.
  bool computes_a = false, computes_b = false;
  // The first operand, which is computed, is stored too, while it is copied to a panel: once (check_copy).
  bool stores_a = false;
  // The other gradient of the same convolution is next to this one, and both go over rows together (R9).
  bool beside_gradient = false;
  // An operand or the epilogue reads parts of a concatenation that is not in memory: no line of them is fetched ahead.
  bool concatenates = false;
  // The second operand is no weight but computed by the step at hand, and lies in memory in rows of outputs.
  bool b_of_step = false;
  // The logical dim of each operand that lies innermost in memory; -1: not known.
  int innermost_of_a = -1, innermost_of_b = -1;
  // Dims of the contraction, outermost first, that make up what lies side by side in the stored results of one output.
  std::vector<int> lie_together = {};
  // CUDA: elements of the widest access of a thread; a library takes the anchor, whose kernel reads operands as they
  // are; the second operand is in memory, and its elements for one result after the other lie side by side.
  std::int64_t lanes = 1;
  bool library = false;
  bool b_lies_by_outputs = false;
  // CUDA: the epilogue, or what is read through, calls functions; 32-bit words of the state of one lane's sums.
  bool functions = false;
  std::int64_t words_of_sums = 0;
};

// Says how the operands of an anchor's contraction lie in memory.
void set_layouts(FusedWork& fused, const ir::Node& anchor, const ir::Contraction& contraction);

// The contraction with its operands as tiles read them: the first an element of each pixel at a time, with what lies
// around it in the cache until the next tile, the second a vector at a time, from a panel. A weight gradient of 1x1 is
// the product of two images, of which either may be the first: where the channels of one lie so far apart that all
// pixels share a set of L1, it is the other, if that is in memory.
ir::Contraction operands_in_order(const ir::Contraction& contraction, const Target& target, bool computes_b);

std::vector<Schedule> candidates(const ir::Contraction& contraction, const Target& target, const FusedWork& fused);

// The anchor's schedules compute this operand in panels, so that it need not be in memory (R6). Those of matrix
// products where few panels hold the same rows; weights' gradients of few channels only images that come from outside,
// which no kernel before could have stored.
bool takes_prologue(const ir::Node& anchor, std::size_t operand, const Target& target, bool from_outside);

// The same, and a value of the operand's elements can be stored there by the way (R7): it is the first operand, and
// copied once. `bits`: a value of them is stored one bit an element.
bool stores_in_copy(const ir::Node& anchor, const Target& target, bool bits);

// Both gradients of a convolution as one kernel (R9) have whole images as tasks, each of which adds up sums of its own:
// so many, with as many images each, as many for each processor that the target may stand for; 0: images make none.
std::int64_t tasks_of_both_gradients(std::int64_t images, const Target& target);

// What else is known of a group without an anchor.
struct DomainElements {
  int lanes = 1;                  // of a vector of them; on CUDA of a thread's access
  std::int64_t stored_bytes = 0;  // of the largest value that is stored element by element
  bool stores_bits = false;       // masks: an access is of whole bytes of them, so lanes stay as many as they are
  // Of the kernel whose finished sums over this domain are needed: where loops can be like its, the two may become one
  // (rule R4). Null: there is none.
  const Schedule* after = nullptr;
};

// No cache has all of a value of so many bytes when it is read next: what is written element by element goes around the
// caches then, and what is read is fetched.
bool exceeds_caches(const Target& target, std::int64_t bytes);

// What a round of two kernels that are one may move: it reads again what it has just read or written, on chip.
std::int64_t bytes_of_round(const Target& target);

std::vector<Schedule> candidates(const Domain& domain, const Target& target, const DomainElements& elements);

}  // namespace fusejit::scheduler
