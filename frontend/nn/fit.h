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
// Floats of the same shape and another dtype.
bool is_convertible(const Type& given, const Type& own);
// own: in the owner's order. convert: what is convertible fits, and is returned as converted.
Unloaded unloaded(const std::vector<NamedType>& own, const std::map<std::string, Type>& given, bool convert = false);
// One UserError that counts what does not fit and names the first five of each kind, unless `left` is empty: "FILE: of
// the module's 6 values 1 is missing ('1.bias')". `own` counts the owner's values. may_convert: the owner takes the
// option `convert`, and where it would help the sentence says so.
void check_complete(const Unloaded& left, std::size_t own, const std::string& source, const char* owner,
                    bool may_convert = false);

}  // namespace fusejit::nn
