// How given values differ from those that are to be set, and the sentence about it: for whatever loads values by name.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fusejit/module.h"

namespace fusejit::nn {

using NamedTypes = std::map<std::string, Type>;

inline bool fits(const Type& given, const Type& own) { return given.dtype == own.dtype && given.shape == own.shape; }

NamedTypes types_of(const StateDict& values);
// own: in the order in which what is missing is named.
Unloaded unloaded(const std::vector<std::pair<std::string, Type>>& own, const NamedTypes& given);
// UserError unless everything fits: "net.npz: of the module's 4 values 1 is missing ('weight')". Five of each kind are
// named. source: of what is given, for people; whose: "the module's".
void check_complete(const Unloaded& left, std::size_t own, const std::string& source, const std::string& whose);
// The two for what is to be set by a state_dict() of the same names.
void check_complete(const StateDict& own, const StateDict& given, const std::string& source, const std::string& whose);

}  // namespace fusejit::nn
