// Keys and entries for tests of the cache on disk.
#pragma once

#include <fmt/format.h>

#include <random>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "runtime/disk/disk_cache.h"
#include "runtime/disk/entries/plan_entry.h"
#include "scheduler/make_plan.h"
#include "tests/support/temporary_folder.h"

namespace fusejit::runtime::disk {

using fusejit::testing::bytes_of;
using fusejit::testing::files_below;
using fusejit::testing::TemporaryFolder;
using fusejit::testing::write_bytes;

// Bytes that do not compress.
inline std::string noise(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// As a kernel's: `number` tells them apart, `compiler` those of one subject.
inline CacheKey test_key(int number, const std::string& compiler = "1") {
  return CacheKey("kernel", {{"kernel", fmt::format("kernel @k{}\n", number)}, {"isa", "v2"}, {"compiler", compiler}});
}
inline std::vector<Section> test_sections(int number, std::size_t bytes = 600) {
  return {{"object", noise(bytes, static_cast<std::uint64_t>(number))}, {"facts", std::to_string(number)}};
}
inline bool is_entry_of(const std::optional<Entry>& entry, int number, std::size_t bytes = 600) {
  return entry && entry->section("object") == test_sections(number, bytes)[0].bytes &&
         entry->section("facts") == std::to_string(number);
}

inline std::string place_of(const DiskCache& cache, const CacheKey& key) {
  return fmt::format("{}/{:x}/{}", cache.folder(), DiskCache::shard_of(key), DiskCache::file_name(key));
}

inline ir::Graph small_graph() {
  return ir::parse_graph(R"(graph @step(%x: f32[4,3,8,8], %w: f32[8,3,3,3], %b: f32[8]) {
  %0 = conv2d(%x, %w) {stride=[1,1], padding=[1,1,1,1]} : f32[4,8,8,8]
  %1 = bias_add(%0, %b) : f32[4,8,8,8]
  %2 = relu(%1) : f32[4,8,8,8]
  %3 = mul(%2, 0.5) : f32[4,8,8,8]
  %4 = sum(%3) {dim=[0], keepdim=false} : f32[8,8,8]
  return %4, %2
})");
}

}  // namespace fusejit::runtime::disk
