// Library: cuDNN as it was found on this machine, loaded with dlopen. Where it is missing or of another major version
// the object says why and everything else goes on. Planning needs neither a driver nor a device; executing needs both.
#pragma once

#include <memory>
#include <string>

#include "runtime/cudnn/library/api.h"

namespace fusejit::runtime::cudnn {

class Library {
 public:
  // Loads `path`; if it is empty, $FUSEJIT_CUDNN; if that is empty too, libcudnn.so.9 as the loader finds it or where
  // `./dev setup --cuda` puts it. Never throws.
  static std::shared_ptr<const Library> load(const std::string& path = "");
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  bool available() const { return why_not_.empty(); }
  // A sentence, "cuDNN: ...", that says what is missing and how to get it; empty if available.
  const std::string& why_not() const { return why_not_; }
  const std::string& path() const { return path_; }  // of the file that was loaded
  int version() const { return version_; }           // 91900 is 9.19.0
  std::string version_text() const;                  // "9.19.0"
  // The functions. Throws DeviceError if not available.
  const Api& api() const;
  // Throws DeviceError with the call, cuDNN's code and its own reason unless `status` is success.
  void check(Status status, const char* call) const;
  // The code and the reason that cuDNN keeps of the last call of this thread: "3001 ...: ...".
  std::string reason(Status status) const;

 private:
  Library() = default;
  void open(const std::string& path);
  void* handle_ = nullptr;
  Api api_{};
  int version_ = 0;
  std::string path_;
  std::string why_not_;
};

}  // namespace fusejit::runtime::cudnn
