#include "ir/types/tiles.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fusejit {

bool may_use_tiles() {
  static const bool allowed = [] {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
    constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;  // of edx
    if ((edx & kBf16) == 0 || (edx & kTile) == 0) return false;
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return allowed;
}

}  // namespace fusejit

#else

namespace fusejit {
bool may_use_tiles() { return false; }
}  // namespace fusejit

#endif
