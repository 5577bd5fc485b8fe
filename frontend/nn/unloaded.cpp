#include "frontend/nn/unloaded.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "ir/base/check.h"

namespace fusejit::nn {
namespace {

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

}  // namespace

NamedTypes types_of(const StateDict& values) {
  NamedTypes types;
  for (const auto& [name, value] : values) types.emplace(name, value.type());
  return types;
}

Unloaded unloaded(const std::vector<std::pair<std::string, Type>>& own, const NamedTypes& given) {
  Unloaded left;
  std::unordered_set<std::string_view> known;
  for (const auto& [name, type] : own) {
    known.insert(name);
    const auto found = given.find(name);
    if (found == given.end()) {
      left.missing.push_back(name);
    } else if (!fits(found->second, type)) {
      left.misshapen.push_back({name, found->second, type});
    }
  }
  for (const auto& [name, type] : given) {
    if (!known.contains(name)) left.unexpected.push_back(name);
  }
  return left;
}

void check_complete(const Unloaded& left, std::size_t own, const std::string& source, const std::string& whose) {
  const auto quoted = [](const std::string& name) { return "'" + name + "'"; };
  std::string wrong;
  complain(wrong, left.missing, "is missing", "are missing", quoted);
  complain(wrong, left.unexpected, "is unknown", "are unknown", quoted);
  complain(wrong, left.misshapen, "is misshapen", "are misshapen", [&](const Unloaded::Misshapen& m) {
    return fmt::format("'{}' is {} and should be {}", m.name, m.given.str(), m.own.str());
  });
  FJ_CHECK(wrong.empty(), "{}: of {} {} values {}", source, whose, own, wrong);
}

void check_complete(const StateDict& own, const StateDict& given, const std::string& source, const std::string& whose) {
  const NamedTypes types = types_of(own);
  const std::vector<std::pair<std::string, Type>> wanted(types.begin(), types.end());
  check_complete(unloaded(wanted, types_of(given)), own.size(), source, whose);
}

}  // namespace fusejit::nn
