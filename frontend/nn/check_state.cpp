#include "frontend/nn/check_state.h"

#include <map>

#include "frontend/nn/fit.h"

namespace fusejit::nn {

void check_state(const StateDict& own, const StateDict& given, const std::string& source, const char* owner) {
  std::vector<NamedType> wanted;
  for (const auto& [name, value] : own) wanted.emplace_back(name, value.type());
  std::map<std::string, Type> types;
  for (const auto& [name, value] : given) types.emplace(name, value.type());
  check_complete(unloaded(wanted, types), wanted.size(), source, owner);
}

}  // namespace fusejit::nn
