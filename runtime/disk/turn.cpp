#include "runtime/disk/turn.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace fusejit::runtime::disk {

Handle Turns::take(const std::string& folder, const ir::Hash& key) {
  if (goes_alone_) return Handle();
  Handle file(::open((folder + "/turns").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(key.high >> 2);
  lock.l_len = 1;
  // Of the open file, not of the process: no close() elsewhere gives it back.
  const auto start = std::chrono::steady_clock::now();
  while (file && ::fcntl(file.get(), F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN) return Handle();
    if (std::chrono::steady_clock::now() - start > longest_) return goes_alone_ = true, Handle();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return file;
}

}  // namespace fusejit::runtime::disk
