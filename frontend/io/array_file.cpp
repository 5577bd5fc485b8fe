#include "frontend/io/array_file.h"

#include <filesystem>
#include <set>
#include <utility>

#include "frontend/io/npz.h"
#include "frontend/io/safetensors.h"
#include "ir/base/check.h"

namespace fusejit::io {
namespace {

// An .npz may hold a bf16 array under its own name beside another of the plain one.
std::vector<NamedArray> with_plain_names(std::vector<NamedArray> arrays, const std::string& path) {
  std::set<std::string> seen;
  for (NamedArray& array : arrays) {
    array.name = plain_name(array.name, array.dtype);
    FJ_CHECK(seen.insert(array.name).second, "{}: there are two arrays named '{}'", path, array.name);
  }
  return arrays;
}

// Which of the two formats a file of that name has.
bool in_safetensors(const std::string& path) {
  if (is_safetensors(path)) return true;
  const std::string ending = std::filesystem::path(path).extension().string();
  FJ_CHECK(ending.empty() || ending == ".npz",
           "{}: named tensors are kept in files that end in .safetensors or .npz (PyTorch reads both), not in {}", path,
           ending);
  return false;
}

NamedArray described_as(std::string name, const NamedArray& array) {
  return {std::move(name), array.dtype, array.shape, {}};
}

}  // namespace

bool is_safetensors(const std::string& path) { return path.ends_with(".safetensors"); }

std::vector<NamedArray> read_arrays(const std::string& path, const WantedArray& wanted) {
  if (in_safetensors(path)) return read_safetensors(path, wanted).arrays;
  if (!wanted) return with_plain_names(read_npz(path), path);
  const auto takes = [&](const NamedArray& described) {
    return wanted(described_as(plain_name(described.name, described.dtype), described));
  };
  return with_plain_names(read_npz(path, {}, takes), path);
}

std::vector<NamedArray> describe_arrays(const std::string& path) {
  return in_safetensors(path) ? describe_safetensors(path).arrays : with_plain_names(describe_npz(path), path);
}

std::map<std::string, std::string> read_metadata(const std::string& path) {
  if (in_safetensors(path)) return describe_safetensors(path).metadata;
  describe_npz(path);  // that it is one
  return {};
}

void write_arrays(const std::string& path, std::vector<NamedArray> arrays,
                  const std::map<std::string, std::string>& metadata) {
  if (in_safetensors(path)) return write_safetensors(path, arrays, metadata);
  FJ_CHECK(metadata.empty(), "{}: an .npz has no place for metadata, a .safetensors has", path);
  for (NamedArray& array : arrays) array.name = stored_name(array.name, array.dtype);
  write_npz(path, arrays);
}

std::vector<NamedArray> read_stored_arrays(const std::string& path, const WantedName& named,
                                           const WantedArray& wanted) {
  if (!in_safetensors(path)) return read_npz(path, named, wanted);
  const auto takes = [&](const NamedArray& described) {
    const NamedArray stored = described_as(stored_name(described.name, described.dtype), described);
    return (!named || named(stored.name)) && (!wanted || wanted(stored));
  };
  std::vector<NamedArray> arrays = read_safetensors(path, takes).arrays;
  for (NamedArray& array : arrays) array.name = stored_name(array.name, array.dtype);
  return arrays;
}

void write_stored_arrays(const std::string& path, std::vector<NamedArray> arrays) {
  for (NamedArray& array : arrays) array.name = plain_name(array.name, array.dtype);
  write_arrays(path, std::move(arrays), {});
}

}  // namespace fusejit::io
