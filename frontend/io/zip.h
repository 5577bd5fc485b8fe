// The part of the zip format that .npz needs: stored and deflated members, zip64, no encryption, one volume. Every
// offset and size is checked against the file before it is used; sizes come from the central directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/io/files.h"

namespace fusejit::io {

struct ZipMember {
  std::string name;
  std::uint16_t method = 0;  // 0 stored, 8 deflated
  std::uint32_t crc = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t header_offset = 0;
};

// The central directory. Throws UserError: "FILE: is not a zip file", "... is cut off".
std::vector<ZipMember> zip_members(std::span<const std::byte> file, const std::string& source);

// The bytes of a member that zip_members() gave, from its beginning, inflated only as far as they are read: a few
// kilobytes may claim to be gigabytes.
class ZipMemberReader {
 public:
  ZipMemberReader(std::span<const std::byte> file, const ZipMember& member, const std::string& source);
  ~ZipMemberReader();
  ZipMemberReader(const ZipMemberReader&) = delete;
  ZipMemberReader& operator=(const ZipMemberReader&) = delete;
  // The next bytes. UserError if there are no more so many, or the member is damaged.
  void read(std::span<std::byte> to);
  // After the last byte: that it is the last one, and the CRC.
  void finish();

 private:
  struct Inflater;
  [[noreturn]] void damaged() const;

  std::span<const std::byte> stored_;
  const ZipMember& member_;
  const std::string& source_;
  std::unique_ptr<Inflater> inflater_;  // of a deflated one
  std::uint64_t at_ = 0;                // in the member's bytes
  std::uint32_t crc_ = 0;
};

// Writes stored members one after another; zip64 records only where they are needed.
class ZipWriter {
 public:
  explicit ZipWriter(NewFile& file) : file_(file) {}
  // The member is the parts joined.
  void add(const std::string& name, std::span<const std::span<const std::byte>> parts);
  // Writes the central directory.
  void finish();

 private:
  NewFile& file_;
  std::vector<ZipMember> members_;
};

}  // namespace fusejit::io
