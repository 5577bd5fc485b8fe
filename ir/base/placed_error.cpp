#include "ir/base/placed_error.h"

#include <typeinfo>

namespace fusejit::ir {

void throw_with_sentence(const Error& error, const std::string& sentence) {
  if (typeid(error) == typeid(UserError)) throw UserError(sentence);
  if (typeid(error) == typeid(UnsupportedError)) throw UnsupportedError(sentence);
  if (typeid(error) == typeid(DeviceError)) throw DeviceError(sentence);
  if (typeid(error) == typeid(FileError)) throw FileError(sentence);
  if (typeid(error) == typeid(InternalError)) throw InternalError(sentence);
  throw;  // the one being handled
}

}  // namespace fusejit::ir
