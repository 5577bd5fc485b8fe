// IDX files: two zero bytes, an element type, a rank, big-endian extents, elements. zlib reads plain files as they are.
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "fusejit/data.h"
#include "ir/base/check.h"

namespace fusejit::data {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 33;

class IdxFile {
 public:
  explicit IdxFile(std::string path) : path_(std::move(path)) {
    if (std::error_code error; std::filesystem::is_directory(path_, error)) {
      throw FileError(fmt::format("{}: is a directory, not a file", path_));
    }
    errno = 0;
    file_.reset(gzopen(path_.c_str(), "rb"));
    if (!file_) throw FileError(fmt::format("{}: cannot be opened: {}", path_, std::strerror(errno)));
    gzbuffer(file_.get(), 1 << 17);
  }

  // Element bytes of an array of the rank; `extents` is filled.
  std::vector<std::uint8_t> read(int rank, std::vector<std::int64_t>& extents) {
    std::uint8_t head[4] = {};
    take(head, sizeof head);
    FJ_CHECK(head[0] == 0 && head[1] == 0 && head[2] == 0x08, "{}: is not an IDX file of bytes", path_);
    FJ_CHECK(head[3] == rank, "{}: has rank {}, {} are expected", path_, head[3],
             rank == 3 ? "images [count, height, width]" : "labels [count]");
    std::int64_t bytes = 1;
    for (int axis = 0; axis < rank; ++axis) {
      std::uint8_t e[4] = {};
      take(e, sizeof e);
      extents.push_back(std::int64_t{e[0]} << 24 | std::int64_t{e[1]} << 16 | std::int64_t{e[2]} << 8 | e[3]);
      FJ_CHECK(extents.back() >= 1, "{}: extent {} is {}", path_, axis, extents.back());
      FJ_CHECK(bytes <= kMostBytes / extents.back(), "{}: claims more than {} bytes", path_, kMostBytes);
      bytes *= extents.back();
    }
    // Grown as bytes arrive: a header that lies costs no memory.
    std::vector<std::uint8_t> elements;
    while (static_cast<std::int64_t>(elements.size()) < bytes) {
      const auto step =
          static_cast<std::size_t>(std::min<std::int64_t>(bytes - static_cast<std::int64_t>(elements.size()), 1 << 22));
      elements.resize(elements.size() + step);
      take(elements.data() + elements.size() - step, step);
    }
    std::uint8_t spare = 0;
    FJ_CHECK(gzread(file_.get(), &spare, 1) == 0, "{}: is longer than its header says, or damaged", path_);
    return elements;
  }

 private:
  void take(void* destination, std::size_t bytes) {
    const int got = gzread(file_.get(), destination, static_cast<unsigned>(bytes));
    FJ_CHECK(got >= 0, "{}: is damaged and cannot be unpacked", path_);
    FJ_CHECK(static_cast<std::size_t>(got) == bytes, "{}: is cut off", path_);
  }

  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };
  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

std::string existing(const std::string& directory, const std::string& name) {
  std::error_code error;
  for (const char* ending : {"", ".gz"}) {
    std::string path = (std::filesystem::path(directory) / name).string() + ending;
    if (std::filesystem::exists(path, error)) return path;
  }
  throw FileError(
      fmt::format("{}: neither {} nor {}.gz is there (the Debian package dataset-fashion-mnist has such files in {})",
                  directory, name, name, kFashionMnist));
}

}  // namespace

ImageSet load_images(const std::string& images_path, const std::string& labels_path) {
  ImageSet set;
  std::vector<std::int64_t> image_extents, label_extents;
  set.pixels = IdxFile(images_path).read(3, image_extents);
  set.labels = IdxFile(labels_path).read(1, label_extents);
  set.count = image_extents[0], set.height = image_extents[1], set.width = image_extents[2];
  FJ_CHECK(set.count == label_extents[0], "{}: holds {} images, {} holds {} labels", images_path, set.count,
           labels_path, label_extents[0]);
  return set;
}

ImageSet load_images(const std::string& directory, Split split) {
  const std::string stem = split == Split::train ? "train" : "t10k";
  const std::string images = existing(directory, stem + "-images-idx3-ubyte");
  return load_images(images, existing(directory, stem + "-labels-idx1-ubyte"));
}

}  // namespace fusejit::data
