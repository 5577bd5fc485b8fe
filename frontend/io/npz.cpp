// The .npz files: names, duplicates and the dtype that travels in disguise; the formats are in npy.cpp and zip.cpp.
#include "frontend/io/npz.h"

#include <set>

#include "frontend/io/files.h"
#include "frontend/io/npy.h"
#include "frontend/io/zip.h"
#include "ir/base/check.h"
#include "runtime/cpu/memory.h"

namespace fusejit::io {
namespace {

constexpr std::string_view kBf16Ending = ".bf16";

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

void check_writable(const NamedArray& array) {
  check_bytes(array);
  FJ_CHECK(array.name.size() <= 255 && array.name.find('\0') == std::string::npos,
           "array names have at most 255 bytes and no zero byte");
}

}  // namespace

std::vector<NamedArray> parse_npz(std::span<const std::byte> file, const std::string& source, const WantedName& wanted,
                                  const WantedArray& elements) {
  constexpr std::string_view kEnding = ".npy";
  std::vector<NamedArray> arrays;
  std::set<std::string> seen;
  double claimed = 0;
  for (const ZipMember& member : zip_members(file, source)) {
    FJ_CHECK(member.name.ends_with(kEnding), "{}: member {} is not a .npy array", source, shown(member.name));
    std::string name = member.name.substr(0, member.name.size() - kEnding.size());
    FJ_CHECK(seen.insert(name).second, "{}: there are two arrays named {}", source, shown(name));
    if (wanted && !wanted(name)) continue;
    claimed += static_cast<double>(member.bytes);
    if (claimed > static_cast<double>(runtime::machine_memory()))
      throw DeviceError(fmt::format("cpu: out of memory: {}: its arrays have {:.0f} bytes", source, claimed));
    ZipMemberReader reader(file, member, source);
    const auto read = [&](std::span<std::byte> to) { reader.read(to); };
    bool left_out = false;
    const auto takes = [&](const NamedArray& described) {
      FJ_CHECK(described.dtype != DType::bf16 || name.ends_with(kBf16Ending),
               "{}: array {} has dtype <u2, which is read only for names that end in .bf16", source, shown(name));
      left_out = elements && !elements(described);
      return !left_out;
    };
    NamedArray array = read_npy(read, member.bytes, name, fmt::format("{}: array {}", source, shown(name)), takes);
    if (left_out) continue;
    reader.finish();
    arrays.push_back(std::move(array));
  }
  return arrays;
}

std::vector<NamedArray> read_npz(const std::string& path, const WantedName& wanted, const WantedArray& elements) {
  return parse_npz(read_file(path), path, wanted, elements);
}

std::vector<NamedArray> describe_npz(const std::string& path) {
  std::vector<NamedArray> described;
  read_npz(path, {}, [&](const NamedArray& array) {
    described.push_back(array);
    return false;
  });
  return described;
}

NamedArray read_npy(const std::string& path) { return parse_npy(read_file(path), "", path); }

void write_npz(const std::string& path, std::span<const NamedArray> arrays) {
  std::set<std::string> seen;
  for (const NamedArray& array : arrays) {
    check_writable(array);
    FJ_CHECK(seen.insert(array.name).second, "{}: there are two arrays named {}", path, shown(array.name));
  }
  NewFile file(path);
  ZipWriter zip(file);
  for (const NamedArray& array : arrays) {
    const std::string header = npy_header(array);
    const std::span<const std::byte> parts[] = {as_bytes(header), array.bytes};
    zip.add(array.name + ".npy", parts);
  }
  zip.finish();
  file.commit();
}

void write_npy(const std::string& path, const NamedArray& array) {
  check_writable(array);
  NewFile file(path);
  file.write(as_bytes(npy_header(array)));
  file.write(array.bytes);
  file.commit();
}

std::string stored_name(std::string_view name, DType dtype) {
  return std::string(name).append(dtype == DType::bf16 ? kBf16Ending : "");
}

std::string plain_name(std::string_view name, DType dtype) {
  if (dtype == DType::bf16 && name.ends_with(kBf16Ending)) name.remove_suffix(kBf16Ending.size());
  return std::string(name);
}

}  // namespace fusejit::io
