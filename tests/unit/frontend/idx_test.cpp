// Image sets: plain and gzipped files, batches, order; every damaged file is one clear sentence.
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "fusejit/data.h"
#include "fusejit/random.h"
#include "fusejit/runtime.h"

namespace fusejit::data {
namespace {

class Idx : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / ("idx_" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  void write(const std::string& name, const std::string& bytes, bool packed = false) const {
    if (packed) {
      const gzFile file = gzopen(path(name).c_str(), "wb");
      gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
      gzclose(file);
    } else {
      std::ofstream(path(name), std::ios::binary) << bytes;
    }
  }
  std::filesystem::path directory_;
};

std::string images(int count) {
  std::string text("\0\0\x08\x03\0\0\0", 7);
  text.push_back(static_cast<char>(count));
  text.append("\0\0\0\x02\0\0\0\x02", 8);
  for (int i = 0; i < 4 * count; ++i) text.push_back(static_cast<char>(i * 10));
  return text;
}
std::string labels(int count) {
  std::string text("\0\0\x08\x01\0\0\0", 7);
  text.push_back(static_cast<char>(count));
  for (int i = 0; i < count; ++i) text.push_back(static_cast<char>(i % 10));
  return text;
}

TEST_F(Idx, ReadsPlainAndPackedFiles) {
  for (const bool packed : {false, true}) {
    const std::string ending = packed ? ".gz" : "";
    write("t10k-images-idx3-ubyte" + ending, images(3), packed);
    write("t10k-labels-idx1-ubyte" + ending, labels(3), packed);
    const ImageSet set = load_images(directory_.string(), Split::test);
    EXPECT_EQ(set.count, 3);
    EXPECT_EQ(set.height, 2);
    EXPECT_EQ(set.pixels[11], 110);
    EXPECT_EQ(set.labels[2], 2);
    std::filesystem::remove(path("t10k-images-idx3-ubyte" + ending));
  }
  EXPECT_THROW(load_images(directory_.string(), Split::train), FileError);
  EXPECT_THROW(load_images("/nonexistent", Split::train), FileError);
}

TEST_F(Idx, BatchesNormaliseAndCoverEverything) {
  set_options({.engine = "graph_interpreter"});
  write("train-images-idx3-ubyte", images(5));
  write("train-labels-idx1-ubyte", labels(5));
  std::multiset<std::int64_t> seen;
  std::vector<std::int64_t> sizes;
  for (const auto& [x, y] :
       idx(directory_.string(), {.batch = 2, .shuffle = true, .mean = 0.5, .deviation = 0.25, .seed = 4})) {
    sizes.push_back(x.size(0));
    EXPECT_EQ(x.shape(), (Shape{y.size(0), 1, 2, 2}));
    const std::vector<std::int64_t> l = y.to_vector<std::int64_t>();
    const std::vector<float> values = x.to_vector<float>();
    for (std::size_t i = 0; i < l.size(); ++i) {
      EXPECT_FLOAT_EQ(values[i * 4 + 1], static_cast<float>(((static_cast<double>(l[i]) * 40 + 10) / 255 - 0.5) / 0.25))
          << "image and label belong together";
    }
    seen.insert(l.begin(), l.end());
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{2, 2, 1}));
  EXPECT_EQ(seen, (std::multiset<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(idx(directory_.string(), {.batch = 2, .drop_last = true}).size(), 2);
  EXPECT_THROW(idx(directory_.string(), {.batch = 0}), UserError);
  EXPECT_THROW(idx(directory_.string(), {.batch = 2, .deviation = 0}), UserError);
}

TEST_F(Idx, RefusesDamageWithOneSentence) {
  const std::string good = images(3);
  write("labels", labels(3));
  for (std::size_t length = 0; length < good.size(); ++length) {
    write("images", good.substr(0, length));
    EXPECT_THROW(load_images(path("images"), path("labels")), UserError) << "cut to " << length;
  }
  const struct {
    std::string bytes, sentence;
  } cases[] = {
      {good + "x", "longer than its header"},
      {"PK\3\4 this is a zip file of some kind", "not an IDX file"},
      {labels(3), "has rank 1"},
      {std::string("\0\0\x0d\x03\0\0\0\1\0\0\0\1\0\0\0\1x", 17), "not an IDX file of bytes"},
      {std::string("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16), "claims more"},
      {std::string("\0\0\x08\x03\x10\0\0\0\0\0\0\1\0\0\0\1", 16), "cut off"},
      {std::string("\0\0\x08\x03\0\0\0\0\0\0\0\1\0\0\0\1", 16), "extent 0 is 0"},
      {images(4), "holds 4 images"},
  };
  for (const auto& c : cases) {
    write("images", c.bytes);
    try {
      load_images(path("images"), path("labels"));
      ADD_FAILURE() << c.sentence;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(c.sentence), std::string::npos) << error.what();
    }
  }
  write("images.gz", good, true);
  std::filesystem::resize_file(path("images.gz"), std::filesystem::file_size(path("images.gz")) - 12);
  EXPECT_THROW(load_images(path("images.gz"), path("labels")), UserError);
}

TEST(RandomPermutation, IsAPermutationOfItsSeed) {
  const std::vector<std::int64_t> a = random_permutation(1000, 3), b = random_permutation(1000, 3),
                                  c = random_permutation(1000, 4);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  const std::set<std::int64_t> all(a.begin(), a.end());
  EXPECT_EQ(all.size(), 1000u);
  EXPECT_EQ(*all.rbegin(), 999);
  EXPECT_TRUE(random_permutation(0, 1).empty());
}

TEST_F(Idx, ContactSheetIsAPng) {
  const ImageSet set{2, 2, 2, {0, 50, 100, 150, 200, 250, 30, 60}, {0, 1}};
  save_contact_sheet(path("sheet.png"), set, {0, 1}, {0, 0}, {"SHIRT", "BAG"}, 2);
  std::ifstream file(path("sheet.png"), std::ios::binary);
  std::string head(8, '\0');
  file.read(head.data(), 8);
  EXPECT_EQ(head, "\x89PNG\r\n\x1a\n");
  EXPECT_THROW(save_contact_sheet(path("x.png"), set, {5}, {0}), UserError);
  EXPECT_THROW(save_contact_sheet("/nonexistent/x.png", set, {0}, {0}), FileError);
}

}  // namespace
}  // namespace fusejit::data
