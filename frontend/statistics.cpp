#include <cstdio>
#include <cstdlib>

#include "frontend/exit_line.h"
#include "fusejit/memory.h"
#include "fusejit/runtime.h"
#include "ir/base/check.h"

namespace fusejit {

std::string Statistics::str() const {
  return fmt::format(
      "{} plan{} ({} from disk) and {} kernel{} ({} from disk, {} compiled) in {:.0f} ms, for {} evaluation{}",
      plans_made, plans_made == 1 ? "" : "s", plans_loaded, kernels_loaded + kernels_compiled,
      kernels_loaded + kernels_compiled == 1 ? "" : "s", kernels_loaded, kernels_compiled, compile_milliseconds,
      evaluations, evaluations == 1 ? "" : "s");
}

void say_statistics_at_exit() {
  static const bool kAsked = [] {
    const char* wish = std::getenv("FUSEJIT_STATS");
    if (wish == nullptr || *wish == '\0' || *wish == '0') return false;
    std::atexit([] {
      const double peak = static_cast<double>(memory::peak()) / (1 << 20);
      std::fputs(fmt::format("fusejit: {}; at most {:.1f} MiB in use\n", stats().str(), peak).c_str(), stderr);
    });
    return true;
  }();
  static_cast<void>(kAsked);
}

}  // namespace fusejit
