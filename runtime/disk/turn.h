// Turns: processes that begin together share the work. Whoever makes an entry has its turn; another waits for a while
// and finds the entry there. No more than a saving: the system takes the turn back from whoever dies, nobody waits for
// long, and where a file system has no locks, everybody has the turn at once.
#pragma once

#include <atomic>
#include <chrono>

#include "ir/base/hash.h"
#include "runtime/disk/files.h"

namespace fusejit::runtime::disk {

class Turns {
 public:
  // Whoever has waited so long for one turn, for somebody who is stopped or slow, waits for none again.
  explicit Turns(std::chrono::milliseconds longest = std::chrono::seconds(1)) : longest_(longest) {}

  // Held until the handle goes; not open if it could not be had. The lock is one byte of a file in `folder`: which one,
  // the key says.
  Handle take(const std::string& folder, const ir::Hash& key);

 private:
  const std::chrono::milliseconds longest_;
  std::atomic<bool> goes_alone_{false};
};

}  // namespace fusejit::runtime::disk
