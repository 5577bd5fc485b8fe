// Node: one immutable op application; Value: a counted handle to it. Tracing, gradient and passes all build Nodes, so a
// shape error is thrown on the line that made it. Destruction never recurses (traces of 10^5 nodes).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fusejit/error.h"
#include "fusejit/type.h"
#include "ir/attrs.h"
#include "ir/op.h"
#include "ir/origin.h"

namespace fusejit::ir {

struct Node;

// Counted handle; cheap to copy, thread-safe count, may be empty.
class Value {
 public:
  Value() = default;
  explicit Value(Node* adopted);  // takes over one count
  Value(const Value& other);
  Value(Value&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Value& operator=(Value other) noexcept { return std::swap(node_, other.node_), *this; }
  ~Value();

  explicit operator bool() const { return node_ != nullptr; }
  const Node* operator->() const { return node_; }
  const Node& operator*() const { return *node_; }
  const Node* get() const { return node_; }
  const Type& type() const;
  // Gives the count up without releasing it.
  Node* leak() { return std::exchange(node_, nullptr); }
  friend bool operator==(const Value& a, const Value& b) { return a.node_ == b.node_; }

 private:
  Node* node_ = nullptr;
};

// An operand: a value, or a number without dtype of its own (ops.md §2).
struct Operand {
  Value value;  // empty: a number
  double number = 0;
  std::int64_t integer = 0;  // exact, where is_integer
  bool is_integer = false;   // written as an integer literal

  Operand(Value v) : value(std::move(v)) {}
  Operand(double n) : number(n) {}
  Operand(int n) : number(n), integer(n), is_integer(true) {}
  Operand(std::int64_t n) : number(static_cast<double>(n)), integer(n), is_integer(true) {}
  bool is_number() const { return !value; }
};

struct Node {
  mutable std::atomic<int> references{1};
  Op op = Op::parameter;
  std::uint32_t region = 0;  // recomputations are regions of their own; nodes merge only within a region
  std::uint64_t serial = 0;  // creation order in the process: operands have smaller ones; not part of equality
  Type type;
  std::vector<Operand> operands;
  Attrs attrs;
  std::uint64_t hash = 0;  // structural; parameters hash by identity
  std::string name;        // parameters: name in texts; else empty
  Origin origin;           // for people; not part of equality, hash or text
  // The front end's note on a recorded node: the buffer that holds its value. Not part of equality, hash or text, not
  // copied by passes; read and written under the front end's lock.
  mutable std::shared_ptr<void> attachment = nullptr;
};

// The only ways to make a node. Both check everything that ops.md §4-§11 asks and throw UserError with the shapes.
// A missing attribute takes the row's default.
Value build(Op op, std::vector<Operand> operands, std::vector<AttrInit> attrs = {}, std::uint32_t region = 0);
Value build(Op op, std::vector<Operand> operands, Attrs attrs, std::uint32_t region = 0);
// A node like `build`, but with the result in `layout` (rank 4): how a layout change is written.
Value build_in(Layout layout, Op op, std::vector<Operand> operands, Attrs attrs, std::uint32_t region = 0);
// What is built from now on has serials above this one.
std::uint64_t fresh_serial();
// The same op, attributes, type and region over other operands of the same types; nothing is checked again. `serial` is
// for capture(), which keeps the place of a node whose operands were merged.
Value rebuild(const Node& like, std::vector<Operand> operands, std::uint64_t serial = 0);
// A leaf. Two parameters are never equal.
Value parameter(Type type, std::string name = "");

// Arithmetic for gradient rules and expansions; `using namespace fusejit::ir::expr` inside ops/ and passes/.
namespace expr {
Value operator+(const Operand& a, const Operand& b);
Value operator-(const Operand& a, const Operand& b);
Value operator*(const Operand& a, const Operand& b);
Value operator/(const Operand& a, const Operand& b);
Value operator-(const Value& a);
}  // namespace expr

}  // namespace fusejit::ir
