// Standard output of a program: what cannot be written is an error with a sentence, not silence and not a signal.
#pragma once

#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <utility>

#include "fusejit/error.h"

namespace fusejit::tools {

// At the start: a write beyond the limit on the size of files fails as other writes do.
inline void expect_full_files() { ::signal(SIGXFSZ, SIG_IGN); }

// fmt::print without its exception: a full disk below standard output ends no work; finish_output() says so.
template <class... T>
void say(fmt::format_string<T...> format, T&&... values) {
  const std::string text = fmt::format(format, std::forward<T>(values)...);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// At the end, however things were written. Throws FileError if something was lost.
inline void finish_output() {
  std::cout.flush();
  if (!std::cout || std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw FileError("standard output cannot be written");
}

}  // namespace fusejit::tools
