// Standard output of a program: what cannot be written is an error with a sentence, not silence and not a signal.
#pragma once

#include <signal.h>

#include <cstdio>
#include <iostream>

#include "fusejit/error.h"

namespace fusejit::tools {

// At the start: a write beyond the limit on the size of files fails as other writes do.
inline void expect_full_files() { ::signal(SIGXFSZ, SIG_IGN); }

// At the end, however things were written. Throws FileError if something was lost.
inline void finish_output() {
  std::cout.flush();
  if (!std::cout || std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw FileError("standard output cannot be written");
}

}  // namespace fusejit::tools
