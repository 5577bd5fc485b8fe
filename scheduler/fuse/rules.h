// What a plan is allowed to join. Which rule does what: ARCHITECTURE.md, "Fusion in eleven lines".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fusejit::scheduler {

enum class Rule : std::uint8_t {
  chain = 1,     // R1: element-wise work runs where its value is used
  reduce = 2,    // R2: a reduction runs in the kernel of what it reduces
  finalise = 3,  // R3: work on a finished reduction runs in the reduction's kernel
  barrier = 4,   // R4: what needs a finished reduction of a row runs in its kernel, while the row is on chip
  epilogue = 5,  // R5: what follows a convolution or product runs in its kernel
  prologue = 6,  // R6: and computes its operands where it copies them
  join = 7,      // R7: and stores, for others, what it computes there
  masks = 8,     // R8: signs that the backward pass needs are kept as bits
  shared = 9     // R9: kernels that read the same elements are one
};

// A set of rules, or none at all: one kernel per recorded op, nothing in place.
class Rules {
 public:
  static const Rules all, none;
  // What TorchInductor's rules would leave of a step, as a model of the bytes it moves: convolutions and products are
  // calls that nothing is fused with, masks are read from the values they belong to; everything else as here.
  static const Rules inductor;

  constexpr bool fuse() const { return fuse_; }
  constexpr bool has(Rule rule) const { return fuse_ && (off_ & bit(rule)) == 0; }
  constexpr Rules without(Rule rule) const { return {fuse_, static_cast<std::uint16_t>(off_ | bit(rule))}; }
  friend constexpr bool operator==(const Rules&, const Rules&) = default;

 private:
  constexpr Rules(bool fuse, std::uint16_t off) : fuse_(fuse), off_(off) {}
  static constexpr std::uint16_t bit(Rule rule) {
    return static_cast<std::uint16_t>(1U << static_cast<unsigned>(rule));
  }

  bool fuse_;
  std::uint16_t off_;
};
inline constexpr Rules Rules::all{true, 0};
inline constexpr Rules Rules::none{false, 0};
inline constexpr Rules Rules::inductor =
    Rules::all.without(Rule::epilogue).without(Rule::prologue).without(Rule::join).without(Rule::masks);

// "R5"
std::string name(Rule rule);
// "all", "none", "inductor", or the rules that are off: "-R5,-R6".
std::string name(const Rules& rules);
// Nothing for other words. Rules that are off may be in any order: "-R6,-R5".
std::optional<Rules> rules_named(std::string_view word);
// UserError for other words, naming what there is.
Rules parse_rules(std::string_view word);

}  // namespace fusejit::scheduler
