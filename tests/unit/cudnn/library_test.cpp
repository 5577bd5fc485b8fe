// Finding cuDNN, saying why not, and describing devices to it.
#include "runtime/cudnn/library/library.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fusejit/error.h"
#include "runtime/cudnn/library/device.h"

namespace fusejit::runtime::cudnn {
namespace {

TEST(CudnnLibrary, SaysWhichFileIsMissing) {
  const auto library = Library::load("/nowhere/libcudnn.so.9");
  EXPECT_FALSE(library->available());
  EXPECT_NE(library->why_not().find("/nowhere/libcudnn.so.9"), std::string::npos) << library->why_not();
  EXPECT_NE(library->why_not().find("FUSEJIT_CUDNN"), std::string::npos) << library->why_not();
  EXPECT_THROW(library->api(), DeviceError);
}

TEST(CudnnLibrary, RefusesAnotherLibrary) {
  const auto library = Library::load("libm.so.6");
  EXPECT_FALSE(library->available());
  EXPECT_NE(library->why_not().find("no symbol cudnnGetVersion"), std::string::npos) << library->why_not();
}

TEST(CudnnLibrary, TheEnvironmentNamesTheFile) {
  const char* before = std::getenv("FUSEJIT_CUDNN");
  const std::string kept = before ? before : "";
  setenv("FUSEJIT_CUDNN", "/elsewhere/libcudnn.so.9", 1);
  const auto library = Library::load();
  before ? setenv("FUSEJIT_CUDNN", kept.c_str(), 1) : unsetenv("FUSEJIT_CUDNN");
  EXPECT_EQ(library->path(), "/elsewhere/libcudnn.so.9");
  EXPECT_FALSE(library->available());
}

TEST(CudnnDevice, DescriptionsAreJson) {
  for (const DeviceDescription& device : described_devices()) {
    const auto json = nlohmann::json::parse(device.json());
    EXPECT_EQ(json.size(), 23u) << device.name;
    EXPECT_EQ(json["deviceVer"], device.compute_capability * 10);
    EXPECT_EQ(&described_device(device.name), &device);
    ASSERT_NE(device_of(device.compute_capability), nullptr);
  }
  EXPECT_EQ(device_of(70), nullptr);
  EXPECT_THROW(described_device("K80"), UserError);
}

class LibraryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!library_->available()) GTEST_SKIP() << library_->why_not();
  }
  const std::shared_ptr<const Library> library_ = Library::load();
};

TEST_F(LibraryTest, KnowsItsVersion) {
  EXPECT_GE(library_->version(), 91100);
  EXPECT_EQ(library_->version_text().substr(0, 2), "9.");
  EXPECT_EQ(library_->path().find("libcudnn"), library_->path().rfind('/') + 1) << library_->path();
}

TEST_F(LibraryTest, AcceptsEveryDescribedDevice) {
  for (const DeviceDescription& device : described_devices()) EXPECT_TRUE(describe_device(library_, device));
}

TEST_F(LibraryTest, RefusesArchitecturesItHasNoCodeFor) {
  for (const int architecture : {53, 70, 999}) {
    DeviceDescription device = described_device("A100");
    device.compute_capability = architecture;
    EXPECT_THROW(describe_device(library_, device), UnsupportedError) << architecture;
  }
}

TEST_F(LibraryTest, AFailureCarriesItsReason) {
  Descriptor device(library_, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  try {
    device.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, std::string_view("{\"deviceName\":\"A100\"}"));
    device.finalize();
    FAIL() << "a description without keys was accepted";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("CUDNN_STATUS_BAD_PARAM"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(describe_device(library_, described_device("H100"))) << "the next call works";
}

}  // namespace
}  // namespace fusejit::runtime::cudnn
