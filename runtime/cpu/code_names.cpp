#include "runtime/cpu/code_names.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <string_view>
#include <vector>

#include "runtime/cpu/gdb_symbols.h"

namespace fusejit::runtime {
namespace {

bool is_on(const char* variable) {
  const char* const wish = std::getenv(variable);
  return wish && std::string_view(wish) == "1";
}

// perf reads /tmp alone, and takes a map only from the user it belongs to: so do we.
int open_perf_map(pid_t process) {
  const std::string path = fmt::format("/tmp/perf-{}.map", process);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644);
  struct stat status = {};
  if (file >= 0 && (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid())) {
    ::close(file);
    return -1;
  }
  return file;
}

struct PerfMap {
  std::mutex mutex;
  std::string lines;  // so far: a forked child starts a map of its own with them
  pid_t process = 0;
  int file = -1;
};

PerfMap& perf_map() {
  static PerfMap& map = *new PerfMap;
  return map;
}

struct NamedCode {
  std::shared_ptr<const void> code;
  std::unique_ptr<GdbSymbols> symbols;  // gone before the code
};

}  // namespace

void add_to_perf_map(std::span<const CodeName> names) {
  PerfMap& map = perf_map();
  const std::lock_guard lock(map.mutex);
  std::string lines;
  for (const CodeName& code : names)
    lines += fmt::format("{:x} {:x} {}\n", reinterpret_cast<std::uintptr_t>(code.address), code.bytes, code.name);
  map.lines += lines;
  if (const pid_t process = ::getpid(); process != map.process) {
    if (map.file >= 0) ::close(map.file);
    map.file = open_perf_map(process), map.process = process;
    lines = map.lines;
  }
  // What is left out of a full disk's map has no name, no more.
  if (map.file >= 0) static_cast<void>(::write(map.file, lines.data(), lines.size()) == 0);
}

std::shared_ptr<const codegen::CompiledKernel> named_code(std::shared_ptr<const codegen::CompiledKernel> kernel,
                                                          const std::string& name) {
  static const bool for_perf = is_on("FUSEJIT_PERF"), for_gdb = is_on("FUSEJIT_GDB");
  if (!for_perf && !for_gdb) return kernel;
  std::vector<CodeName> names;
  for (std::size_t i = 0; i < kernel->phases.size(); ++i) {
    const codegen::CompiledPhase& phase = kernel->phases[i];
    names.push_back({kernel->phases.size() == 1 ? name : fmt::format("{}_phase{}", name, i),
                     reinterpret_cast<const void*>(phase.entry), phase.code_bytes});
  }
  if (for_perf) add_to_perf_map(names);
  if (!for_gdb) return kernel;
  auto named = std::make_shared<codegen::CompiledKernel>(*kernel);
  auto code = std::make_shared<NamedCode>();
  code->code = kernel->code;
  code->symbols = std::make_unique<GdbSymbols>(names);
  named->code = std::move(code);
  return named;
}

}  // namespace fusejit::runtime
