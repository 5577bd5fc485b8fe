#include "runtime/disk/entries/cuda_entry.h"

#include <fmt/format.h>

#include <charconv>
#include <sstream>

#include "runtime/disk/identity.h"

namespace fusejit::runtime::disk {
namespace {

std::string architecture(int compute_capability) { return fmt::format("sm_{}", compute_capability); }

// `program` lists its kernels by the hashes of their keys, which say the rest.
CacheKey program_of(const std::string& program, const std::string& sm) {
  return CacheKey("program", {{"kernels", program}, {"sm", sm}});
}

// One fact a line: buffers N, scalars f32 i64, work N, counters N, then launches and what the compiler said of them.
std::string facts(const codegen::cuda::CudaSource& source, const codegen::cuda::CudaBinary& binary) {
  std::string text =
      fmt::format("buffers {}\nwork {}\ncounters {}\nscalars", source.buffers, source.work_bytes, source.counter_bytes);
  for (const DType scalar : source.scalars) text.append(" ").append(name(scalar));
  text += '\n';
  for (const codegen::cuda::CudaLaunch& l : source.launches) {
    text += fmt::format("launch {} {} {} {} {} {} {} {}\n", l.entry, l.grid[0], l.grid[1], l.grid[2], l.block[0],
                        l.block[1], l.block[2], l.shared_bytes);
    for (const codegen::cuda::Resources& r : binary.entries) {
      if (r.entry == l.entry)
        text += fmt::format("resources {} {} {} {} {}\n", r.entry, r.registers, r.spill_bytes, r.stack_bytes,
                            r.shared_bytes);
    }
  }
  return text;
}

bool read_facts(const std::string& text, CudaKernelEntry& entry) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string what, word;
    words >> what;
    if (what == "buffers") {
      words >> entry.source.buffers;
    } else if (what == "work") {
      words >> entry.source.work_bytes;
    } else if (what == "counters") {
      words >> entry.source.counter_bytes;
    } else if (what == "scalars") {
      while (words >> word) {
        const auto dtype = dtype_named(word);
        if (!dtype) return false;
        entry.source.scalars.push_back(*dtype);
      }
      words.clear();
    } else if (what == "launch") {
      codegen::cuda::CudaLaunch l;
      words >> l.entry >> l.grid[0] >> l.grid[1] >> l.grid[2] >> l.block[0] >> l.block[1] >> l.block[2] >>
          l.shared_bytes;
      entry.source.launches.push_back(std::move(l));
    } else if (what == "resources") {
      codegen::cuda::Resources r;
      words >> r.entry >> r.registers >> r.spill_bytes >> r.stack_bytes >> r.shared_bytes;
      entry.resources.push_back(std::move(r));
    } else {
      return false;
    }
    if (words.fail()) return false;
  }
  return !entry.source.launches.empty();
}

}  // namespace

CacheKey cuda_kernel_key(std::string kernel_key_text, int compute_capability) {
  return CacheKey("cuda kernel", {{"kernel", std::move(kernel_key_text)},
                                  {"sm", architecture(compute_capability)},
                                  {"compiler", std::string(source_identity())},
                                  {"nvrtc", codegen::cuda::nvrtc_identity()}});
}

CacheKey program_key(const CacheKey& kernel, const std::string& program) {
  return program_of(program, kernel.part("sm"));
}

void put_program(DiskCache& cache, const std::vector<CacheKey>& keys,
                 const std::vector<codegen::cuda::CudaSource>& sources, const codegen::cuda::CudaBinary& binary) {
  std::string program;
  for (const CacheKey& key : keys) program += key.hash().hex() + '\n';
  cache.put(program_of(program, architecture(binary.compute_capability)), {{"cubin", binary.cubin}});
  for (std::size_t i = 0; i < keys.size(); ++i) {
    cache.put(keys[i], {{"facts", facts(sources[i], binary)}, {"program", program}, {"source", sources[i].text}});
  }
}

std::optional<CudaKernelEntry> find_cuda_kernel(DiskCache& cache, const CacheKey& key) {
  const auto found = cache.find(key);
  if (!found) return std::nullopt;
  CudaKernelEntry entry;
  entry.source.text = found->section("source");
  entry.program = found->section("program");
  if (!read_facts(found->section("facts"), entry)) return std::nullopt;
  return entry;
}

std::string find_program(DiskCache& cache, const std::string& program, int compute_capability) {
  const auto found = cache.find(program_of(program, architecture(compute_capability)));
  return found ? found->section("cubin") : "";
}

bool contains_cuda_kernel(DiskCache& cache, const CacheKey& key) {
  const auto entry = find_cuda_kernel(cache, key);
  return entry && cache.contains(program_key(key, entry->program));
}

void refused_cuda_kernel(DiskCache& cache, const CacheKey& key, const std::string& program, const std::string& why) {
  cache.refused(program_of(program, key.part("sm")), why);
  cache.remove(key);
}

}  // namespace fusejit::runtime::disk
