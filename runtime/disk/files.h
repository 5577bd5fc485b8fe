// Files of a folder that may be shared, full, or hostile: opened without following links, judged by their owner and
// mode before a byte is believed, written beside their place and renamed into it. Nothing here throws; a failure is a
// sentence.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fusejit::runtime::disk {

// An open file or folder.
class Handle {
 public:
  explicit Handle(int fd = -1) : fd_(fd) {}
  Handle(Handle&& other) noexcept;
  Handle& operator=(Handle other) noexcept;
  ~Handle();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // Closed now, and whether that went well: only then has a written file been written.
  bool close();

 private:
  int fd_;
};

// Who else may write what we read: code is loaded from these files.
enum class Trust : std::uint8_t {
  owner,  // nobody: files are this user's or the system's, and no group or other may write
  shared  // whoever can write there is trusted
};

// Why what is open here is not to be trusted; empty if it is.
std::string why_untrusted(const struct stat& status, Trust trust);

// The folder, made with mode 0700 if it is not there and `create`, parents too. Not open if it is not there (`why`
// stays empty), or cannot be used or trusted.
Handle open_folder(const std::string& path, Trust trust, bool create, std::string& why);
// A folder in an open one.
Handle open_folder_in(const Handle& parent, const std::string& name, Trust trust, bool create, std::string& why);

// All bytes of a file. Nothing if it is not there (`why` stays empty), or cannot be read or trusted, or is larger than
// `most` bytes.
std::optional<std::string> read_file(const Handle& folder, const std::string& name, Trust trust, std::size_t most,
                                     std::string& why, struct stat* status = nullptr);
// The whole file or nothing, with mode 0600. `durable`: it survives a power cut. False with `why`.
bool write_file(const Handle& folder, const std::string& name, std::string_view bytes, bool durable, std::string& why);

// "<16 hex digits>-<32 hex digits>.entry"
bool is_entry(std::string_view name);
// Files that a killed writer leaves behind: ".<random>.tmp".
bool is_temporary(std::string_view name);

}  // namespace fusejit::runtime::disk
