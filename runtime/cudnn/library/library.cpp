#include "runtime/cudnn/library/library.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>

#include "ir/base/check.h"
#include "ir/base/cuda_libraries.h"

namespace fusejit::runtime::cudnn {
namespace {

constexpr int kMajor = 9;
// Devices described by JSON are of 9.8, deterministic reductions of 9.11.
constexpr int kOldestVersion = 91100;
constexpr const char* kHowToGetIt =
    "install cuDNN 9.11 or newer for CUDA (NVIDIA's libcudnn9 package, or the wheel nvidia-cudnn-cu13: `./dev setup "
    "--cuda`), or let FUSEJIT_CUDNN name the file libcudnn.so.9";

template <typename Function>
bool resolve(void* handle, const char* symbol, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(handle, symbol));
  return function != nullptr;
}

// The first symbol that the library lacks, or null.
const char* resolve_all(void* handle, Api& api) {
#define FJ_RESOLVE(name) \
  if (!resolve(handle, #name, api.name)) return #name
  FJ_RESOLVE(cudnnGetVersion);
  FJ_RESOLVE(cudnnGetMaxDeviceVersion);
  FJ_RESOLVE(cudnnGetErrorString);
  FJ_RESOLVE(cudnnGetLastErrorString);
  FJ_RESOLVE(cudnnCreate);
  FJ_RESOLVE(cudnnDestroy);
  FJ_RESOLVE(cudnnSetStream);
  FJ_RESOLVE(cudnnBackendCreateDescriptor);
  FJ_RESOLVE(cudnnBackendDestroyDescriptor);
  FJ_RESOLVE(cudnnBackendFinalize);
  FJ_RESOLVE(cudnnBackendSetAttribute);
  FJ_RESOLVE(cudnnBackendGetAttribute);
  FJ_RESOLVE(cudnnBackendExecute);
#undef FJ_RESOLVE
  return nullptr;
}

std::string version_of(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

std::shared_ptr<const Library> Library::load(const std::string& path) {
  const char* named = std::getenv("FUSEJIT_CUDNN");
  std::shared_ptr<Library> library(new Library);
  if (path.empty() && (!named || !*named)) {
    // The first that can be used; if there is none, what is said is said of the first that was there at all.
    std::shared_ptr<Library> found;
    for (const std::string& name : ir::cuda_library_names("libcudnn.so.9")) {
      const std::shared_ptr<Library> next(new Library);
      next->open(name);
      if (!found || (!found->handle_ && next->handle_) || next->available()) found = next;
      if (found->available()) break;
    }
    library = found;
  } else {
    library->open(path.empty() ? named : path);
  }
  return library;
}

// The handle stays open: cuDNN's sub-libraries keep threads and state that do not survive dlclose.
Library::~Library() = default;

void Library::open(const std::string& path) {
  path_ = path;
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_) {
    const char* error = dlerror();
    why_not_ = fmt::format("cuDNN: {}; {}", error ? error : path + " cannot be loaded", kHowToGetIt);
    return;
  }
  Dl_info where{};
  if (const char* missing = resolve_all(handle_, api_)) {
    why_not_ = fmt::format("cuDNN: {} has no symbol {}; {}", path, missing, kHowToGetIt);
    return;
  }
  if (dladdr(reinterpret_cast<void*>(api_.cudnnGetVersion), &where) && where.dli_fname) path_ = where.dli_fname;
  version_ = static_cast<int>(api_.cudnnGetVersion());
  if (version_ / 10000 != kMajor || version_ < kOldestVersion) {
    why_not_ = fmt::format("cuDNN: {} is version {}; {}", path_, version_of(version_), kHowToGetIt);
  }
}

std::string Library::version_text() const { return version_of(version_); }

const Api& Library::api() const {
  if (!available()) throw DeviceError(why_not_);
  return api_;
}

std::string Library::reason(Status status) const {
  std::array<char, 2048> message{};
  api_.cudnnGetLastErrorString(message.data(), message.size());
  message.back() = '\0';
  std::string text = message.data();
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return fmt::format("{} {}{}{}", status, api_.cudnnGetErrorString(status), text.empty() ? "" : ": ", text);
}

void Library::check(Status status, const char* call) const {
  if (status != 0) throw DeviceError(fmt::format("cuDNN: {} failed with {}", call, reason(status)));
}

}  // namespace fusejit::runtime::cudnn
