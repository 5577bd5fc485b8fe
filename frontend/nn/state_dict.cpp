// Module's values by name: as a StateDict, in a file, and back.
//
// Types are compared first, those of files too, so that no elements are read of what is refused or left out; and no
// value is set before all new ones are on their devices.
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/evaluation/evaluation.h"
#include "frontend/io/array_file.h"
#include "frontend/nn/fit.h"
#include "fusejit/module.h"
#include "ir/base/check.h"

namespace fusejit::nn {
namespace {

using NamedValues = std::vector<std::pair<std::string, Parameter>>;
using NamedTypes = std::map<std::string, Type>;

// PyTorch counts the batches of a batch norm whose running statistics have no momentum; here there are none.
bool is_passed_over(std::string_view name) { return name.ends_with("num_batches_tracked"); }

std::vector<NamedType> types_of(const NamedValues& own) {
  std::vector<NamedType> types;
  for (const auto& [name, parameter] : own) types.emplace_back(name, parameter.value().type());
  return types;
}

Unloaded not_loaded(const std::vector<NamedType>& own, const NamedTypes& given, const LoadOptions& options) {
  Unloaded left = unloaded(own, given, options.convert);
  std::erase_if(left.unexpected, is_passed_over);
  return left;
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
  Unloaded left = not_loaded(types_of(own), types, options);
  if (options.strict) check_complete(left, own.size(), "load_state_dict", "module", true);
  StateDict fitting = values;
  for (const Unloaded::Misshapen& m : left.misshapen) fitting.erase(m.name);
  std::vector<Tensor> rounded;  // all of them in one plan
  for (const Unloaded::Misshapen& m : left.converted) {
    Tensor& value = fitting.at(m.name);
    rounded.push_back(value = value.to(m.own.dtype).detach());
  }
  fusejit::eval(rounded);
  set_values(own, fitting);
  return left;
}

void Module::save(const std::string& path) const { fusejit::save(state_dict(), path); }

Unloaded Module::load(const std::string& path, LoadOptions options) {
  const auto own = named_values();
  NamedTypes given;
  for (const io::NamedArray& array : io::describe_arrays(path))
    given.emplace(array.name, Type{array.dtype, array.shape, Layout::standard});
  const std::vector<NamedType> types = types_of(own);
  Unloaded left = not_loaded(types, given, options);
  if (options.strict) check_complete(left, own.size(), path, "module", true);
  const NamedTypes wanted(types.begin(), types.end());
  const auto is_wanted = [&](const io::NamedArray& described) {
    const auto found = wanted.find(described.name);
    if (found == wanted.end()) return false;
    const Type type{described.dtype, described.shape, Layout::standard};
    return fits(type, found->second) || (options.convert && is_convertible(type, found->second));
  };
  StateDict values;
  for (const io::NamedArray& array : io::read_arrays(path, is_wanted))
    values.emplace(array.name, from_host(array.bytes.data(), array.shape, array.dtype));
  load_state_dict(values, options);  // which sees to a file that has changed in between
  return left;
}

}  // namespace fusejit::nn
