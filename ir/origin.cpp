#include "ir/origin.h"

#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>

#include "ir/kept_names.h"
#include "ir/node.h"

namespace fusejit::ir {
namespace {

thread_local Origin current;  // needs no destructor: what is static may record when a thread is over

}  // namespace

// Both are made before anybody can fork: a child would wait for ever for a thread that was about to make them.
std::mutex& kept_names_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

static std::unordered_set<std::string>& kept_names() {
  static auto& names = *new std::unordered_set<std::string>;
  return names;
}

[[maybe_unused]] static const auto& made_before_any_fork = (kept_names_mutex(), kept_names());

const char* kept_name(std::string_view text) {
  const std::lock_guard lock(kept_names_mutex());
  return kept_names().emplace(text).first->c_str();
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
