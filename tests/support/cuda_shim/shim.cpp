#include "tests/support/cuda_shim/shim.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace fusejit::test {

std::string run_command(const std::string& command, const std::filesystem::path& log) {
  if (std::system(fmt::format("{} > {} 2>&1", command, log.string()).c_str()) == 0) return "";
  std::ifstream file(log);
  std::stringstream text;
  text << file.rdbuf();
  return fmt::format("{}\n{}", command, text.str());
}

Shim::Shim(std::vector<codegen::cuda::CudaSource> sources, std::string prelude)
    : sources_(std::move(sources)), prelude_(std::move(prelude)) {
  static int number = 0;
  folder_ = std::filesystem::temp_directory_path() / fmt::format("fusejit-shim-{}-{}", getpid(), number++);
  std::filesystem::create_directories(folder_);
}

Shim::~Shim() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void Shim::open(const char* optimise) {
  std::ofstream(folder_ / "program.cpp") << text();
  // Two steps: linked with these options, the sanitizers' own libraries would answer their calls.
  const std::string base = (folder_ / "program").string();
  const std::string said =
      run_command(fmt::format("{0} -c -fPIC {2} -fsanitize=thread,alignment -DFJ_CHECK_MEMORY {1}.cpp -o {1}.o && "
                              "{0} -shared {1}.o -o {1}.so",
                              compiler(), base, optimise),
                  folder_ / "log");
  if (!said.empty()) throw std::runtime_error(said);
  void* handle = dlopen((base + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw std::runtime_error(dlerror());
  launch_ = reinterpret_cast<Launch>(dlsym(handle, "fj_shim_run"));
  memory_ = reinterpret_cast<SetMemory>(dlsym(handle, "fj_shim_memory"));
}

void Shim::run(std::size_t kernel, Operands& operands, ir::TaskOrder order) {
  const codegen::cuda::CudaSource& source = sources_[kernel];
  Memory work(source.work_bytes), counters(source.counter_bytes);
  std::memset(work.data(), 0xff, static_cast<std::size_t>(source.work_bytes));
  std::vector<void*> addresses;
  std::vector<ShimMemory> memory;
  for (Memory& buffer : operands.buffers) {
    addresses.push_back(buffer.data());
    memory.push_back({buffer.data(), buffer.size(), buffer.defined});
  }
  if (source.work_bytes > 0) memory.push_back({work.data(), work.size(), false});
  if (source.counter_bytes > 0) memory.push_back({counters.data(), counters.size(), true});
  begin(memory);
  std::vector<std::uint64_t> scalars;
  for (const ir::Scalar& s : operands.scalars) scalars.push_back(s.bits);
  void* work_address = work.data();
  void* counter_address = counters.data();
  std::vector<void*> args;
  for (void*& address : addresses) args.push_back(&address);
  for (std::uint64_t& s : scalars) args.push_back(&s);
  if (source.work_bytes > 0) args.push_back(&work_address);
  if (source.counter_bytes > 0) args.push_back(&counter_address);
  int entry = first_entry(kernel);
  for (const codegen::cuda::CudaLaunch& l : source.launches) {
    const long long grid[] = {l.grid[0], l.grid[1], l.grid[2]}, block[] = {l.block[0], l.block[1], l.block[2]};
    const std::string error = launch_(entry++, args.data(), grid, block, l.shared_bytes, static_cast<int>(order));
    if (!error.empty()) throw std::runtime_error(l.entry + ": " + error);
  }
  if (!work.guard_intact() || !counters.guard_intact()) throw std::runtime_error("written beyond work or counters");
  for (std::int64_t i = 0; i < source.counter_bytes; ++i)
    if (static_cast<const char*>(counters.data())[i] != 0) throw std::runtime_error("a counter is not left zero");
}

void Shim::begin(const std::vector<ShimMemory>& memory) {
  std::vector<void*> addresses;
  std::vector<long long> sizes;
  std::vector<unsigned char> defined;
  for (const ShimMemory& m : memory)
    addresses.push_back(m.address), sizes.push_back(m.bytes), defined.push_back(m.defined);
  memory_(static_cast<int>(memory.size()), addresses.data(), sizes.data(), defined.data());
}

std::string Shim::launch(std::size_t kernel, std::size_t number, std::span<void* const> pointers,
                         std::span<const std::uint64_t> scalars, ir::TaskOrder order) {
  const codegen::cuda::CudaSource& source = sources_[kernel];
  std::vector<void*> addresses(pointers.begin(), pointers.end());
  std::vector<std::uint64_t> numbers(scalars.begin(), scalars.end());
  std::vector<void*> args;
  for (void*& address : addresses) args.push_back(&address);
  auto at = args.begin() + source.buffers;
  for (std::uint64_t& s : numbers) at = args.insert(at, &s) + 1;
  const codegen::cuda::CudaLaunch& l = source.launches[number];
  const long long grid[] = {l.grid[0], l.grid[1], l.grid[2]}, block[] = {l.block[0], l.block[1], l.block[2]};
  return launch_(first_entry(kernel) + static_cast<int>(number), args.data(), grid, block, l.shared_bytes,
                 static_cast<int>(order));
}

std::string Shim::text() const {
  std::ifstream file(std::string(FUSEJIT_SOURCE_DIR) + "/tests/support/cuda_shim/shim.inc");
  std::stringstream text;
  std::string program = prelude_;
  for (const codegen::cuda::CudaSource& source : sources_) program += "\n" + source.text;
  // Compilers check only accesses to variables whose address is known elsewhere.
  static const std::regex shared(R"((__shared__ [^;\n]* (\w+)(\[\d+\])?;))");
  text << file.rdbuf() << std::regex_replace(program, shared, "$1 fj_shim_escape(&$2);")
       << "\nusing fj_shim_thunk = void (*)(void**);\nstatic const fj_shim_thunk fj_shim_entries[] = {\n";
  for (const codegen::cuda::CudaSource& source : sources_)
    for (const codegen::cuda::CudaLaunch& l : source.launches)
      text << fmt::format("    [](void** args) {{ fj_shim_call({}, args); }},\n", l.entry);
  text << "};\nextern \"C\" const char* fj_shim_run(int entry, void** args, const long long* grid, const long long* "
          "block, long long shared_bytes, int order) {\n  return fj_shim_launch(fj_shim_entries[entry], args, grid, "
          "block, shared_bytes, order);\n}\n";
  return text.str();
}

std::string Shim::compiler() {
  return FUSEJIT_CXX_COMPILER " -std=c++17 -ffp-contract=off -fno-strict-aliasing -w -I " FUSEJIT_SOURCE_DIR
                              "/tests/support/cuda_shim";
}

int Shim::first_entry(std::size_t kernel) const {
  std::size_t n = 0;
  for (std::size_t i = 0; i < kernel; ++i) n += sources_[i].launches.size();
  return static_cast<int>(n);
}

}  // namespace fusejit::test
