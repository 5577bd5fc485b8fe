// Origin: which part of the user's program a node stands for. It is for people alone: no comparison, hash, key or text
// of a graph has it, so that equal layers share graphs, plans and kernels whatever they are called.
//
// What a node is built in says what it comes from: a module that is being called, an op whose gradient is taken, a node
// that a pass replaces. Whoever opens such a part opens an OriginScope.
#pragma once

#include <cstdint>
#include <string_view>

namespace fusejit::ir {

struct Node;

enum class Role : std::uint8_t {
  forward,
  gradient,
  weight_gradient,  // of an anchor, for its weights
  update            // by an optimiser
};

// Texts are for good: those of the op table, and kept_name().
struct Origin {
  const char* module = nullptr;  // "layer1.0.bn2"; null: none
  const char* op = nullptr;      // as the user called it, "batch_norm_train"; null: by the node's own name
  Role role = Role::forward;
  std::uint64_t node = 0;  // serial of the recorded node that a pass made this one of; 0: it is recorded itself
};

// The text, kept for the rest of the process. A program has so many modules and no more.
const char* kept_name(std::string_view text);

// What nodes that this thread builds now come from.
const Origin& current_origin();

class OriginScope {
 public:
  explicit OriginScope(const Origin& origin);
  // For passes: what is built comes from where `replaced` came from.
  explicit OriginScope(const Node& replaced);
  ~OriginScope();
  OriginScope(const OriginScope&) = delete;
  OriginScope& operator=(const OriginScope&) = delete;

 private:
  Origin before_;
};

// The op that the user called for this node.
const char* called_op(const Node& node);
// Serial of the recorded node that this one was made of, perhaps its own.
std::uint64_t recorded_serial(const Node& node);
// Of what a pass builds in place of the node.
Origin origin_of_replacement(const Node& node);
// Of what computes the cotangents of the node's operands.
Origin origin_of_gradient(const Node& node);

}  // namespace fusejit::ir
