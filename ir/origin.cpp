#include "ir/origin.h"

#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>

#include "ir/node.h"

namespace fusejit::ir {
namespace {

thread_local Origin current;  // needs no destructor: what is static may record when a thread is over

}  // namespace

const char* kept_name(std::string_view text) {
  static std::mutex& mutex = *new std::mutex;
  static auto& names = *new std::unordered_set<std::string>;
  const std::lock_guard lock(mutex);
  return names.emplace(text).first->c_str();
}

const Origin& current_origin() { return current; }

OriginScope::OriginScope(const Origin& origin) : before_(std::exchange(current, origin)) {}
OriginScope::OriginScope(const Node& replaced) : OriginScope(origin_of_replacement(replaced)) {}
OriginScope::~OriginScope() { current = before_; }

// Names of the op table are literals, which end with a zero.
const char* called_op(const Node& node) { return node.origin.op ? node.origin.op : name(node.op).data(); }

std::uint64_t recorded_serial(const Node& node) { return node.origin.node ? node.origin.node : node.serial; }

Origin origin_of_replacement(const Node& node) {
  return {node.origin.module, called_op(node), node.origin.role, recorded_serial(node)};
}

Origin origin_of_gradient(const Node& node) { return {node.origin.module, called_op(node), Role::gradient}; }

}  // namespace fusejit::ir
