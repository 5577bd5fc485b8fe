#include "frontend/nn/fit.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "frontend/io/named_array.h"
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

bool fits(const Type& given, const Type& own) { return given.dtype == own.dtype && given.shape == own.shape; }

bool is_convertible(const Type& given, const Type& own) {
  return is_float(given.dtype) && is_float(own.dtype) && given.dtype != own.dtype && given.shape == own.shape;
}

Unloaded unloaded(const std::vector<NamedType>& own, const std::map<std::string, Type>& given, bool convert) {
  Unloaded left;
  std::unordered_set<std::string_view> known;
  for (const auto& [name, type] : own) {
    known.insert(name);
    const auto found = given.find(name);
    if (found == given.end()) {
      left.missing.push_back(name);
    } else if (convert && is_convertible(found->second, type)) {
      left.converted.push_back({name, found->second, type});
    } else if (!fits(found->second, type)) {
      left.misshapen.push_back({name, found->second, type});
    }
  }
  for (const auto& [name, type] : given) {
    if (!known.contains(name)) left.unexpected.push_back(name);
  }
  return left;
}

void check_complete(const Unloaded& left, std::size_t own, const std::string& source, const char* owner,
                    bool may_convert) {
  std::string wrong;
  complain(wrong, left.missing, "is missing", "are missing", io::shown);
  complain(wrong, left.unexpected, "is unknown", "are unknown", io::shown);
  complain(wrong, left.misshapen, "is misshapen", "are misshapen", [&](const Unloaded::Misshapen& m) {
    return fmt::format("{} is {} and should be {}", io::shown(m.name), m.given.str(), m.own.str());
  });
  const auto convertible = std::find_if(left.misshapen.begin(), left.misshapen.end(),
                                        [](const Unloaded::Misshapen& m) { return is_convertible(m.given, m.own); });
  if (may_convert && convertible != left.misshapen.end())
    wrong += fmt::format("; {{.convert = true}} rounds floats of another dtype, as {} from {} to {}",
                         io::shown(convertible->name), name(convertible->given.dtype), name(convertible->own.dtype));
  FJ_CHECK(wrong.empty(), "{}: of the {}'s {} value{} {}", source, owner, own, own == 1 ? "" : "s", wrong);
}

}  // namespace fusejit::nn
