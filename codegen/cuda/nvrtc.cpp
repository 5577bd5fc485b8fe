#include "codegen/cuda/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>

#include "codegen/cuda/emit.h"
#include "fusejit/error.h"
#include "ir/base/build_id.h"
#include "ir/base/cuda_libraries.h"

namespace fusejit::codegen::cuda {
namespace {

// The part of NVRTC's C interface that is used, so that building needs no toolkit. It has been the same since CUDA 11.
using Program = void*;
struct Table {
  int (*version)(int* major, int* minor) = nullptr;
  int (*arch_count)(int* count) = nullptr;
  int (*archs)(int* list) = nullptr;
  int (*create)(Program* program, const char* source, const char* name, int headers, const char* const* texts,
                const char* const* names) = nullptr;
  int (*destroy)(Program* program) = nullptr;
  int (*compile)(Program program, int count, const char* const* options) = nullptr;
  int (*log_size)(Program program, std::size_t* size) = nullptr;
  int (*log)(Program program, char* text) = nullptr;
  int (*ptx_size)(Program program, std::size_t* size) = nullptr;
  int (*ptx)(Program program, char* text) = nullptr;
  int (*cubin_size)(Program program, std::size_t* size) = nullptr;
  int (*cubin)(Program program, char* bytes) = nullptr;
  const char* (*error_string)(int result) = nullptr;
};
struct Nvrtc {
  Table table;
  NvrtcState state;
};

constexpr int kOldestMajor = 12, kNewestMajor = 13;
constexpr const char* kSourceName = "fusejit.cu";
constexpr const char* kAdvice =
    "install the CUDA toolkit, or the wheel nvidia-cuda-nvrtc (`./dev setup --cuda`), or set FUSEJIT_NVRTC to the "
    "library's path";

// Fills the table; the name of a symbol that is missing, or "".
std::string resolve(void* library, Table& table) {
  std::string missing;
  const auto find = [&](const char* symbol, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (function == nullptr && missing.empty()) missing = symbol;
  };
  find("nvrtcVersion", table.version);
  find("nvrtcGetNumSupportedArchs", table.arch_count);
  find("nvrtcGetSupportedArchs", table.archs);
  find("nvrtcCreateProgram", table.create);
  find("nvrtcDestroyProgram", table.destroy);
  find("nvrtcCompileProgram", table.compile);
  find("nvrtcGetProgramLogSize", table.log_size);
  find("nvrtcGetProgramLog", table.log);
  find("nvrtcGetPTXSize", table.ptx_size);
  find("nvrtcGetPTX", table.ptx);
  find("nvrtcGetCUBINSize", table.cubin_size);
  find("nvrtcGetCUBIN", table.cubin);
  find("nvrtcGetErrorString", table.error_string);
  return missing;
}

Nvrtc open(const std::string& path) {
  Nvrtc result;
  std::vector<std::string> names;
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"}) {
    for (std::string& found : ir::cuda_library_names(name)) names.push_back(std::move(found));
  }
  if (!path.empty()) names = {path};
  void* library = nullptr;
  std::vector<std::string> reasons;
  for (const std::string& name : names) {
    library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) {
      result.state.library = name;
      break;
    }
    const char* reason = dlerror();
    reasons.emplace_back(reason != nullptr ? reason : name);
  }
  NvrtcState& state = result.state;
  if (library == nullptr) {
    state.why_not = fmt::format("NVRTC was not found ({}); {}", fmt::join(reasons, "; "), kAdvice);
    return result;
  }
  const std::string missing = resolve(library, result.table);
  if (!missing.empty()) {
    state.why_not = fmt::format("{} has no {}: it is not NVRTC 12 or 13; {}", state.library, missing, kAdvice);
    return result;
  }
  int count = 0;
  if (result.table.version(&state.major, &state.minor) != 0 || result.table.arch_count(&count) != 0 || count <= 0) {
    state.why_not = fmt::format("{} does not say its version; {}", state.library, kAdvice);
    return result;
  }
  if (state.major < kOldestMajor || state.major > kNewestMajor) {
    state.why_not = fmt::format("{} is NVRTC {}.{}, {} or {} is needed; {}", state.library, state.major, state.minor,
                                kOldestMajor, kNewestMajor, kAdvice);
    return result;
  }
  state.architectures.resize(static_cast<std::size_t>(count));
  result.table.archs(state.architectures.data());
  std::sort(state.architectures.begin(), state.architectures.end());
  state.available = true;
  return result;
}

// Loaded once and never unloaded; what it says does not change.
const Nvrtc& loaded() {
  static const Nvrtc& library = *new const Nvrtc([] {  // never destroyed either
    const char* path = std::getenv("FUSEJIT_NVRTC");
    return open(path != nullptr ? path : "");
  }());
  return library;
}

std::vector<std::string> options(const NvrtcState& state) {
  std::vector<std::string> list(kRequiredOptions.begin(), kRequiredOptions.end());
  list.insert(list.end(), {"-lineinfo", "--ptxas-options=-v", "--diag-suppress=177"});
  if (state.major >= 13) list.emplace_back("--minimal");
  return list;
}

struct Compiled {
  const Table& table;
  Program program = nullptr;
  explicit Compiled(const Table& table) : table(table) {}
  Compiled(const Compiled&) = delete;
  ~Compiled() {
    if (program != nullptr) table.destroy(&program);
  }
  std::string get(int (*size_of)(Program, std::size_t*), int (*read)(Program, char*)) const {
    std::size_t size = 0;
    if (size_of(program, &size) != 0 || size == 0) return "";
    std::string bytes(size, '\0');
    if (read(program, bytes.data()) != 0) return "";
    return bytes;
  }
};

// The log with our source line under each that names one: "fusejit.cu(123): error: ...".
std::string with_source_lines(std::string_view log, std::string_view source) {
  std::vector<std::string_view> lines;
  for (std::size_t start = 0; start < source.size();) {
    const std::size_t end = std::min(source.find('\n', start), source.size());
    lines.push_back(source.substr(start, end - start));
    start = end + 1;
  }
  std::string text;
  for (std::size_t start = 0; start < log.size();) {
    const std::size_t end = std::min(log.find('\n', start), log.size());
    const std::string_view line = log.substr(start, end - start);
    start = end + 1;
    text.append(line).append("\n");
    const std::string prefix = fmt::format("{}(", kSourceName);
    const std::size_t at = line.find(prefix);
    std::size_t number = 0;
    if (at == std::string_view::npos) continue;
    const char* first = line.data() + at + prefix.size();
    if (std::from_chars(first, line.data() + line.size(), number).ec != std::errc()) continue;
    if (number >= 1 && number <= lines.size()) text.append("  > ").append(lines[number - 1]).append("\n");
  }
  return text;
}

[[noreturn]] void fail(const Table& table, int code, const std::string& arch, const std::string& log,
                       std::string_view source) {
  std::string_view text = source;
  if (text.starts_with(prelude())) text.remove_prefix(prelude().size());
  throw DeviceError(fmt::format("nvrtcCompileProgram for {}: {} (code {})\n{}\n{}", arch, table.error_string(code),
                                code, with_source_lines(log, source), text));
}

void run(Compiled& compiled, std::string_view source, const std::string& arch) {
  const Nvrtc& library = loaded();
  const std::string text(source);
  const int created = library.table.create(&compiled.program, text.c_str(), kSourceName, 0, nullptr, nullptr);
  if (created != 0)
    throw DeviceError(fmt::format("nvrtcCreateProgram: {} (code {})", library.table.error_string(created), created));
  std::vector<std::string> list = options(library.state);
  list.push_back("--gpu-architecture=" + arch);
  std::vector<const char*> pointers;
  for (const std::string& option : list) pointers.push_back(option.c_str());
  const int code = library.table.compile(compiled.program, static_cast<int>(pointers.size()), pointers.data());
  if (code == 0) return;
  std::string log = compiled.get(library.table.log_size, library.table.log);
  while (!log.empty() && log.back() == '\0') log.pop_back();
  fail(library.table, code, arch, log, source);
}

void require(int compute_capability) {
  const NvrtcState& state = nvrtc();
  if (!state.available) throw UnsupportedError(state.why_not);
  if (std::binary_search(state.architectures.begin(), state.architectures.end(), compute_capability)) return;
  throw UnsupportedError(fmt::format("NVRTC {}.{} cannot compile for sm_{}; it knows sm_{}", state.major, state.minor,
                                     compute_capability, fmt::join(state.architectures, ", sm_")));
}

// The number before `unit` in a line: "0 bytes spill stores" gives 0.
std::int64_t number_before(std::string_view line, std::string_view unit) {
  const std::size_t at = line.find(unit);
  if (at == std::string_view::npos) return 0;
  std::size_t start = at;
  while (start > 0 && line[start - 1] >= '0' && line[start - 1] <= '9') --start;
  std::int64_t number = 0;
  std::from_chars(line.data() + start, line.data() + at, number);
  return number;
}

std::vector<Resources> resources(std::string_view log) {
  std::vector<Resources> list;
  for (std::size_t start = 0; start < log.size();) {
    const std::size_t end = std::min(log.find('\n', start), log.size());
    const std::string_view line = log.substr(start, end - start);
    start = end + 1;
    constexpr std::string_view kEntry = "Compiling entry function '";
    if (const std::size_t at = line.find(kEntry); at != std::string_view::npos) {
      const std::string_view rest = line.substr(at + kEntry.size());
      list.push_back({std::string(rest.substr(0, rest.find('\'')))});
    }
    if (list.empty()) continue;
    Resources& last = list.back();
    last.registers = std::max(last.registers, static_cast<int>(number_before(line, " registers")));
    last.shared_bytes = std::max(last.shared_bytes, number_before(line, " bytes smem"));
    last.stack_bytes = std::max(last.stack_bytes, number_before(line, " bytes stack frame"));
    last.spill_bytes += number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
  }
  return list;
}

// ptxas names entries in an order of its own.
std::vector<Resources> in_order(std::vector<Resources> list, std::string_view program) {
  std::stable_sort(list.begin(), list.end(), [&](const Resources& a, const Resources& b) {
    return program.find(" " + a.entry + "(") < program.find(" " + b.entry + "(");
  });
  return list;
}

}  // namespace

const NvrtcState& nvrtc() { return loaded().state; }

NvrtcState look_for_nvrtc(const std::string& path) { return open(path).state; }

std::string nvrtc_identity() {
  const NvrtcState& state = nvrtc();
  if (!state.available) return "no nvrtc";
  static const std::string& build =
      *new std::string(ir::build_id_at(reinterpret_cast<const void*>(loaded().table.compile)));
  return fmt::format("nvrtc {}.{} {} {}", state.major, state.minor, build, fmt::join(options(state), " "));
}

CudaBinary compile(std::string_view program, int compute_capability) {
  require(compute_capability);
  const auto start = std::chrono::steady_clock::now();
  const Table& table = loaded().table;
  Compiled compiled(table);
  run(compiled, program, fmt::format("sm_{}", compute_capability));
  CudaBinary binary;
  binary.compute_capability = compute_capability;
  binary.cubin = compiled.get(table.cubin_size, table.cubin);
  binary.entries = in_order(resources(compiled.get(table.log_size, table.log)), program);
  binary.compile_milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (binary.cubin.empty()) throw DeviceError("nvrtcGetCUBIN gave nothing");
  return binary;
}

std::string compile_to_ptx(std::string_view program, int compute_capability) {
  require(compute_capability);
  const Table& table = loaded().table;
  Compiled compiled(table);
  run(compiled, program, fmt::format("compute_{}", compute_capability));
  std::string ptx = compiled.get(table.ptx_size, table.ptx);
  while (!ptx.empty() && ptx.back() == '\0') ptx.pop_back();
  return ptx;
}

}  // namespace fusejit::codegen::cuda
