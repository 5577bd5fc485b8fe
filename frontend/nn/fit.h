// Which of some given values fit those that they are to replace, and the sentence where all must: for the values of a
// module and the state of an optimiser.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fusejit/module.h"

namespace fusejit::nn {

using NamedType = std::pair<std::string, Type>;

bool fits(const Type& given, const Type& own);
// own: in the owner's order.
Unloaded unloaded(const std::vector<NamedType>& own, const std::map<std::string, Type>& given);
// One UserError that counts what does not fit and names the first five of each kind, unless `left` is empty: "FILE: of
// the module's 6 values 1 is missing ('1.bias')". `own` counts the owner's values.
void check_complete(const Unloaded& left, std::size_t own, const std::string& source, const char* owner);

}  // namespace fusejit::nn
