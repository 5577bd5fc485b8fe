// Target::host(): the processor of this process, read from cpuid. All constants are nominal, by processor family.
#include "fusejit/target.h"
#include "ir/types/tiles.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#endif

namespace fusejit {

#if defined(__x86_64__)
namespace {

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// Zeros where the processor has no such leaf.
Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

struct Processor {
  bool amd = false;
  bool intel = false;
  unsigned family = 0;
  unsigned model = 0;
};

Processor processor() {
  const Registers r = cpuid(0);
  char vendor[12];
  std::memcpy(vendor, &r.ebx, 4), std::memcpy(vendor + 4, &r.edx, 4), std::memcpy(vendor + 8, &r.ecx, 4);
  const unsigned signature = cpuid(1).eax;
  Processor p;
  p.amd = std::memcmp(vendor, "AuthenticAMD", 12) == 0;
  p.intel = std::memcmp(vendor, "GenuineIntel", 12) == 0;
  p.family = signature >> 8 & 0xf;
  if (p.family == 0xf) p.family += signature >> 20 & 0xff;
  p.model = (signature >> 4 & 0xf) | (signature >> 12 & 0xf0);
  return p;
}

// The widest level that the processor has and the operating system saves the registers of.
Isa isa_level() {
  __builtin_cpu_init();
  const bool has_f16c = (cpuid(1).ecx >> 29 & 1) != 0;
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c;
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512cd");
  if (has_avx512 && __builtin_cpu_supports("avx512bf16")) return may_use_tiles() ? Isa::x86_amx : Isa::x86_avx512bf16;
  if (has_avx512) return Isa::x86_avx512;
  if (has_avx2) return Isa::x86_avx2;
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt") ? Isa::x86_v2 : Isa::any;
}

// FMAs of the level's full width that a core starts per cycle.
int fma_ports(Isa isa, const Processor& p) {
  if (!has_avx512(isa)) return isa == Isa::x86_avx2 ? 2 : 1;
  if (p.amd) return p.family >= 0x1a ? 2 : 1;  // Zen 4 halves a 512-bit operation
  if (!p.intel) return 1;
  constexpr std::array<unsigned, 5> kClients = {0x7d, 0x7e, 0x8c, 0x8d, 0xa7};  // Ice, Tiger and Rocket Lake
  // None of those has instructions on bf16: a virtual machine may name one and be another.
  return !has_bf16(isa) && std::find(kClients.begin(), kClients.end(), p.model) != kClients.end() ? 1 : 2;
}

// Families that were measured: a dot product of pairs has twice the products of an FMA in its time on Zen 4 and Zen 5,
// half as many on Sapphire Rapids. What is none of them is taken to gain nothing.
bool has_fast_dot2(Isa isa, const Processor& p) {
  return isa == Isa::x86_avx512bf16 && p.amd && (p.family == 0x19 || p.family == 0x1a);
}

// Bytes of the data or unified cache of that level, or 0. Leaf 4 (Intel) and 0x8000001d (AMD) share one format.
std::int64_t cache_bytes(unsigned level, const Processor& p) {
  for (unsigned i = 0; i < 16; ++i) {
    const Registers r = cpuid(p.amd ? 0x8000001du : 4u, i);
    const unsigned type = r.eax & 0x1f;
    if (type == 0) break;
    if (type == 2 || (r.eax >> 5 & 7) != level) continue;  // 2: instructions only
    return (std::int64_t{r.ebx >> 22} + 1) * ((r.ebx >> 12 & 0x3ff) + 1) * ((r.ebx & 0xfff) + 1) *
           (std::int64_t{r.ecx} + 1);
  }
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  const int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
  return sysconf(names[level - 1]);
#else
  return 0;
#endif
}

// Sums are cut into an eighth of a target's tasks at least (x86_weights.cpp): two for each processor, and four.
constexpr int kTasksOfProcessor = 16, kLeastTasks = 32;

}  // namespace

Target Target::host() {
  const Processor p = processor();
  Target target;
  target.isa = isa_level();
  const auto set_if_known = [&](std::int64_t& constant, unsigned level) {
    const std::int64_t bytes = cache_bytes(level, p);
    if (bytes > 0) constant = bytes;
  };
  set_if_known(target.l1_bytes, 1);
  set_if_known(target.l2_bytes, 2);
  set_if_known(target.l3_bytes, 3);
  target.fma_per_cycle = fma_ports(target.isa, p);
  target.dot2_is_faster = has_fast_dot2(target.isa, p);
  // Of the machine, not of what this process may use of it: numbers depend on how sums are cut.
  target.tasks = kLeastTasks;
  for (const long processors = sysconf(_SC_NPROCESSORS_CONF); target.tasks < kTasksOfProcessor * processors;)
    target.tasks *= 2;
  return target;
}

#else

Target Target::host() {
  Target target;
  target.isa = Isa::any;
  return target;
}

#endif

}  // namespace fusejit
