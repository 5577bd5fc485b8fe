// FJ_CHECK for users, FJ_ASSERT for us. Both stay in release builds.
#pragma once

#include <fmt/format.h>

#include "fusejit/error.h"

// Throws UserError with the formatted sentence unless the condition holds.
#define FJ_CHECK(condition, ...)                                            \
  do {                                                                      \
    if (!(condition)) throw ::fusejit::UserError(fmt::format(__VA_ARGS__)); \
  } while (false)

// Throws InternalError: a bug of ours.
#define FJ_ASSERT(condition, ...)                                               \
  do {                                                                          \
    if (!(condition)) throw ::fusejit::InternalError(fmt::format(__VA_ARGS__)); \
  } while (false)
