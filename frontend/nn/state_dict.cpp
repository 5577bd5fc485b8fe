// Module's values by name: as a StateDict, in an .npz, and back.
//
// Types are compared first, those of files too, so that no elements are read of what is refused or left out; and no
// value is set before all new ones are on their devices.
#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "frontend/evaluation/evaluation.h"
#include "frontend/io/npz.h"
#include "fusejit/module.h"
#include "ir/base/check.h"

namespace fusejit::nn {
namespace {

using NamedValues = std::vector<std::pair<std::string, Parameter>>;
using NamedTypes = std::map<std::string, Type>;

// PyTorch counts the batches of a batch norm whose running statistics have no momentum; here there are none.
bool is_passed_over(std::string_view name) { return name.ends_with("num_batches_tracked"); }

bool fits(const Type& given, const Type& own) { return given.dtype == own.dtype && given.shape == own.shape; }

Unloaded unloaded(const NamedValues& own, const NamedTypes& given) {
  Unloaded left;
  std::unordered_set<std::string_view> known;
  for (const auto& [name, parameter] : own) {
    known.insert(name);
    const auto found = given.find(name);
    const Type type = parameter.value().type();
    if (found == given.end()) {
      left.missing.push_back(name);
    } else if (!fits(found->second, type)) {
      left.misshapen.push_back({name, found->second, type});
    }
  }
  for (const auto& [name, type] : given) {
    if (!known.contains(name) && !is_passed_over(name)) left.unexpected.push_back(name);
  }
  return left;
}

constexpr std::size_t kNamed = 5;  // of each kind

// "3 are unknown ('a', 'b', 'c')", of a kind that has entries.
template <class Entries, class Describe>
void complain(std::string& sentence, const Entries& entries, const char* one_is, const char* many_are,
              Describe describe) {
  if (entries.empty()) return;
  sentence +=
      fmt::format("{}{} {} (", sentence.empty() ? "" : ", ", entries.size(), entries.size() == 1 ? one_is : many_are);
  for (std::size_t i = 0; i < std::min(kNamed, entries.size()); ++i)
    sentence += (i == 0 ? "" : ", ") + describe(entries[i]);
  sentence += entries.size() > kNamed ? fmt::format(" and {} more)", entries.size() - kNamed) : ")";
}

// source: of the values, for people.
void check_complete(const Unloaded& left, std::size_t own, const std::string& source) {
  const auto quoted = [](const std::string& name) { return "'" + name + "'"; };
  std::string wrong;
  complain(wrong, left.missing, "is missing", "are missing", quoted);
  complain(wrong, left.unexpected, "is unknown", "are unknown", quoted);
  complain(wrong, left.misshapen, "is misshapen", "are misshapen", [&](const Unloaded::Misshapen& m) {
    return fmt::format("'{}' is {} and should be {}", m.name, m.given.str(), m.own.str());
  });
  FJ_CHECK(wrong.empty(), "{}: of the module's {} values {}", source, own, wrong);
}

// Those of `own` that `values` has, all of one type with them.
void set_values(const NamedValues& own, const StateDict& values) {
  // A fresh state each: marking a parameter must not mark the caller's tensor.
  std::vector<std::pair<const Parameter*, Tensor>> copies;
  for (const auto& [name, parameter] : own) {
    if (const auto found = values.find(name); found != values.end())
      copies.emplace_back(&parameter, tensor_of(place(buffer_of(found->second), parameter.value().device())));
  }
  for (const auto& [parameter, copy] : copies) parameter->set(copy);
}

}  // namespace

StateDict Module::state_dict() const {
  StateDict values;
  for (const auto& [name, value] : named_values()) values.emplace(name, value.value());
  return values;
}

Unloaded Module::load_state_dict(const StateDict& values, LoadOptions options) {
  const auto own = named_values();
  NamedTypes types;
  for (const auto& [name, value] : values) types.emplace(name, value.type());
  Unloaded left = unloaded(own, types);
  if (options.strict) check_complete(left, own.size(), "load_state_dict");
  StateDict fitting = values;
  for (const Unloaded::Misshapen& m : left.misshapen) fitting.erase(m.name);
  set_values(own, fitting);
  return left;
}

void Module::save(const std::string& path) const { fusejit::save(state_dict(), path); }

Unloaded Module::load(const std::string& path, LoadOptions options) {
  const auto own = named_values();
  NamedTypes given;
  for (const io::NamedArray& array : io::describe_npz(path)) {
    const std::string name = io::plain_name(array.name, array.dtype);
    const bool is_new = given.emplace(name, Type{array.dtype, array.shape, Layout::standard}).second;
    FJ_CHECK(is_new, "{}: there are two arrays named '{}'", path, name);
  }
  Unloaded left = unloaded(own, given);
  if (options.strict) check_complete(left, own.size(), path);
  NamedTypes wanted;
  for (const auto& [name, parameter] : own) wanted.emplace(name, parameter.value().type());
  const auto is_wanted = [&](const io::NamedArray& described) {
    const auto found = wanted.find(io::plain_name(described.name, described.dtype));
    return found != wanted.end() && fits({described.dtype, described.shape, Layout::standard}, found->second);
  };
  StateDict values;
  for (const io::NamedArray& array : io::read_npz(path, {}, is_wanted))
    values.emplace(io::plain_name(array.name, array.dtype), from_host(array.bytes.data(), array.shape, array.dtype));
  load_state_dict(values, options);  // which sees to a file that has changed in between
  return left;
}

}  // namespace fusejit::nn
