// `fusejit convert`: named values from one format to another, and what it refuses.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>

#include "fusejit/fusejit.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/tools/program.h"

namespace fusejit {
namespace {

using testing::bytes_of;

const std::string kReference = FUSEJIT_SOURCE_DIR "/tests/reference/torchvision/";

class ConvertCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kFusejit)) GTEST_SKIP() << kFusejit << " is not built";
  }
  int run(const std::string& arguments) {
    const std::string command = kFusejit + " convert " + arguments + " > " + folder_ / "out" + " 2> " + folder_ / "err";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string error() const { return bytes_of(folder_ / "err"); }

  const testing::TemporaryFolder folder_;
};

void expect_same(const StateDict& got, const StateDict& want) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, value] : want) {
    ASSERT_TRUE(got.contains(name)) << name;
    EXPECT_EQ(got.at(name).dtype(), value.dtype()) << name;
    EXPECT_EQ(got.at(name).shape(), value.shape()) << name;
    EXPECT_EQ(got.at(name).to_vector<double>(), value.to_vector<double>()) << name;
  }
}

TEST_F(ConvertCommand, KeepsValuesNamesAndMetadata) {
  StateDict values = load(kReference + "resnet.weights.npz");
  ASSERT_TRUE(values.contains("bn1.num_batches_tracked"));
  values.emplace("half", tensor<float>({0.5, -2}).to(bf16));
  save(values, folder_ / "a.safetensors", {{"author", "x"}});
  ASSERT_EQ(run(folder_ / "a.safetensors" + " " + folder_ / "b.npz"), 0) << error();
  expect_same(load(folder_ / "b.npz"), values);
  ASSERT_EQ(run(folder_ / "b.npz" + " " + folder_ / "c.safetensors"), 0) << error();
  expect_same(load(folder_ / "c.safetensors"), values);
  EXPECT_EQ(load_metadata(folder_ / "c.safetensors"), (Metadata{{"format", "pt"}}));
  ASSERT_EQ(run(folder_ / "a.safetensors" + " " + folder_ / "d.safetensors"), 0) << error();
  EXPECT_EQ(load_metadata(folder_ / "d.safetensors"), (Metadata{{"author", "x"}, {"format", "pt"}}));
}

TEST_F(ConvertCommand, TakesTheValuesOfAnOnnxModel) {
  ASSERT_EQ(run(kReference + "densenet.onnx " + folder_ / "a.npz"), 0) << error();
  const StateDict values = load(folder_ / "a.npz");
  StateDict torch = load(kReference + "densenet.weights.npz");
  std::erase_if(torch, [](const auto& named) { return named.first.ends_with("num_batches_tracked"); });
  EXPECT_EQ(values.size(), torch.size());
  for (const auto& [name, value] : torch) EXPECT_TRUE(values.contains(name)) << name;
}

TEST_F(ConvertCommand, HoldsValuesAgainstAModel) {
  StateDict values = models::squeezenet1_1().state_dict();
  values.emplace("bn.num_batches_tracked", zeros({}, i64));
  save(values, folder_ / "a.npz");
  ASSERT_EQ(run("--model squeezenet1_1 " + folder_ / "a.npz" + " " + folder_ / "b.safetensors"), 0) << error();
  values.erase("bn.num_batches_tracked");
  expect_same(load(folder_ / "b.safetensors"), values);
  EXPECT_EQ(run("--model squeezenet1_0 " + folder_ / "a.npz" + " " + folder_ / "c.safetensors"), 2);
  EXPECT_NE(error().find("of the module's 52 values"), std::string::npos) << error();
  EXPECT_EQ(run("--model alexnet " + folder_ / "a.npz" + " " + folder_ / "c.safetensors"), 2);
  EXPECT_TRUE(error().starts_with("fusejit: error: model 'alexnet' is not known (convnet, ")) << error();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "c.safetensors"));
}

TEST_F(ConvertCommand, RefusesWithOneLine) {
  testing::write_bytes(folder_ / "bad.npz", "no zip");
  EXPECT_EQ(run(folder_ / "bad.npz" + " " + folder_ / "a.safetensors"), 2);
  EXPECT_EQ(run(folder_ / "none.npz" + " " + folder_ / "a.safetensors"), 5);
  EXPECT_EQ(run(kReference + "vgg.npz " + folder_ / "a.onnx"), 1);
  EXPECT_EQ(error(), "fusejit: error: '" + folder_ / "a.onnx" + "' must end in .npz or .safetensors\n");
  EXPECT_EQ(run(kReference + "vgg.npz"), 1);
}

}  // namespace
}  // namespace fusejit
