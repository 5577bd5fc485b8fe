// Transforms: what they make of images by hand, and that what they draw depends on (seed, epoch, example) alone.
#include "fusejit/data/transforms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/support/error_of.h"

namespace fusejit::data {
namespace {

using fusejit::testing::error_of;

// The pixel at (y, x) of channel c is 100 * y + 10 * x + c, as a byte.
Image numbered(std::int64_t height, std::int64_t width, std::int64_t channels = 1) {
  Image image{height, width, channels, {}};
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t c = 0; c < channels; ++c)
        image.pixels.push_back(static_cast<std::uint8_t>(100 * y + 10 * x + c));
  return image;
}

std::vector<int> shape_of(const Image& image) {
  return {static_cast<int>(image.height), static_cast<int>(image.width), static_cast<int>(image.channels)};
}

TEST(Draws, AreThoseOfTheirPlace) {
  Draws first(1, 2, 3), same(1, 2, 3);
  const double a = first.uniform(), b = first.uniform();
  EXPECT_EQ(a, same.uniform());
  EXPECT_EQ(b, same.uniform());
  std::set<double> others = {a, b};
  for (Draws draws : {Draws(2, 2, 3), Draws(1, 3, 3), Draws(1, 2, 4)}) others.insert(draws.uniform());
  EXPECT_EQ(others.size(), 5u);
  double sum = 0;
  std::set<std::int64_t> seen;
  Draws many(9, 0, 0);
  for (int i = 0; i < 10'000; ++i) {
    const double value = many.uniform(2, 4);
    EXPECT_TRUE(value >= 2 && value < 4);
    sum += value;
    seen.insert(many.below(5));
  }
  EXPECT_NEAR(sum / 10'000, 3, 0.03) << "five standard errors of a mean of uniform numbers";
  EXPECT_EQ(seen, (std::set<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(error_of([&] { many.below(0); }), "draws: one of 0 values");
}

TEST(Transforms, ResizeTakesTheShorterSide) {
  Draws draws(0, 0, 0);
  EXPECT_EQ(shape_of(Resize(4)(numbered(10, 15), draws)), (std::vector{4, 6, 1}));
  EXPECT_EQ(shape_of(Resize(7)(numbered(5, 3), draws)), (std::vector{11, 7, 1})) << "7 * 5 / 3, rounded down";
  EXPECT_EQ(shape_of(Resize(2, 9)(numbered(5, 3, 3), draws)), (std::vector{2, 9, 3}));
  EXPECT_EQ(error_of([] { Resize(0); }), "Resize: 0 x 1 pixels, there must be 1 to 89478485");
}

TEST(Transforms, CenterCropRoundsAsPython) {
  Draws draws(0, 0, 0);
  EXPECT_EQ(CenterCrop(2)(numbered(2, 5), draws).pixels[0], 20) << "round(1.5) is 2";
  EXPECT_EQ(CenterCrop(2)(numbered(2, 7), draws).pixels[0], 20) << "round(2.5) is 2";
  EXPECT_EQ(CenterCrop(1, 4)(numbered(1, 1, 1), draws).pixels, (std::vector<std::uint8_t>{0, 0, 0, 0}));
  EXPECT_EQ(CenterCrop(1, 4)({1, 1, 1, {7}}, draws).pixels, (std::vector<std::uint8_t>{0, 7, 0, 0}));
}

TEST(Transforms, RandomCropIsAnywhereAndNowhereElse) {
  std::set<std::vector<std::uint8_t>> tall, wide;
  for (int i = 0; i < 200; ++i) {
    Draws draws(3, 0, i);
    tall.insert(RandomCrop(2, 1, {.padding = 1})({2, 1, 1, {5, 6}}, draws).pixels);
    wide.insert(RandomCrop(1, 2, {.padding = 1})({1, 2, 1, {5, 6}}, draws).pixels);
  }
  EXPECT_EQ(tall, (std::set<std::vector<std::uint8_t>>{{0, 0}, {0, 5}, {5, 6}, {6, 0}}));
  EXPECT_EQ(wide, tall);
  Draws draws(3, 0, 0);
  EXPECT_EQ(error_of([&] { RandomCrop(4, 9, {.padding = 1})(numbered(5, 6), draws); }),
            "RandomCrop: 4 x 9 pixels of an image that has 5 x 6 and 1 more at each side");
  EXPECT_EQ(shape_of(RandomCrop(4, 9, {.pad_if_needed = true})(numbered(5, 6, 2), draws)), (std::vector{4, 9, 2}));
  EXPECT_THROW(RandomCrop(4, {.padding = -1}), UserError);
}

TEST(Transforms, RandomResizedCropKeepsItsRanges) {
  // An image whose pixels say where they are: what a crop covers is seen at its corners.
  Image image{64, 64, 2, {}};
  for (int y = 0; y < 64; ++y)
    for (int x = 0; x < 64; ++x)
      image.pixels.insert(image.pixels.end(), {static_cast<std::uint8_t>(3 * y), static_cast<std::uint8_t>(3 * x)});
  double least = 1, most = 0;
  for (int i = 0; i < 300; ++i) {
    Draws draws(4, 1, i);
    const Image part = RandomResizedCrop(16, {.scale = {0.1, 0.5}, .ratio = {0.5, 2}})(image, draws);
    ASSERT_EQ(shape_of(part), (std::vector{16, 16, 2}));
    const double height = (part.pixels[30 * 16] - part.pixels[0]) / 3.0 * 16 / 15,
                 width = (part.pixels[31] - part.pixels[1]) / 3.0 * 16 / 15;
    const double area = height * width / (64 * 64);
    least = std::min(least, area), most = std::max(most, area);
    EXPECT_TRUE(width / height > 0.4 && width / height < 2.5) << i;
  }
  EXPECT_TRUE(least > 0.08 && least < 0.14) << least;
  EXPECT_TRUE(most > 0.42 && most < 0.56) << most;
  Draws draws(4, 1, 0);
  EXPECT_EQ(shape_of(RandomResizedCrop(3, 5)(numbered(1, 200), draws)), (std::vector{3, 5, 1})) << "no try fits";
  EXPECT_THROW(RandomResizedCrop(3, {.scale = {0.5, 0.1}}), UserError);
  EXPECT_THROW(RandomResizedCrop(3, {.ratio = {0, 1}}), UserError);
}

TEST(Transforms, FlipsAsOftenAsItSays) {
  int flips = 0;
  for (int i = 0; i < 1000; ++i) {
    Draws draws(5, 0, i);
    flips += RandomHorizontalFlip(0.3)({1, 2, 1, {1, 2}}, draws).pixels[0] == 2;
  }
  EXPECT_NEAR(flips, 300, 73) << "five standard deviations";
  Draws draws(5, 0, 0);
  EXPECT_EQ(RandomHorizontalFlip(0)({1, 2, 1, {1, 2}}, draws).pixels[0], 1);
  EXPECT_EQ(RandomHorizontalFlip(1)({1, 2, 1, {1, 2}}, draws).pixels[0], 2);
  EXPECT_THROW(RandomHorizontalFlip(1.5), UserError);
}

TEST(Compose, EndsInTensors) {
  Draws draws(0, 0, 0);
  const Compose all({Resize(4), [](Image image, Draws&) { return hflip(image); }, CenterCrop(2), ToTensor(),
                     Normalize({0.5, 0.25}, {0.5, 2})});
  EXPECT_EQ(shape_of(all(numbered(8, 8, 2), draws)), (std::vector{2, 2, 2}));
  const std::vector<float> values = all.values_of_bytes(2);
  ASSERT_EQ(values.size(), 512u);
  EXPECT_EQ(values[51], (51 / 255.0f - 0.5f) / 0.5f);
  EXPECT_EQ(values[256 + 255], 0.375f);
  EXPECT_EQ(Compose().values_of_bytes(1)[51], 0.2f);
  EXPECT_EQ(Compose({Normalize({0.5}, {0.5})}).values_of_bytes(3)[512], -1);
  EXPECT_EQ(error_of([&] { all.values_of_bytes(3); }), "Normalize: 2 means for 3 channels");
  EXPECT_EQ(error_of([] {
              Compose({ToTensor(), Resize(4)});
            }),
            "Compose: after ToTensor comes Normalize or nothing; images are bytes before");
  EXPECT_EQ(error_of([] { Compose({Normalize({0}, {1}), ToTensor()}); }), "Compose: nothing comes after Normalize");
  EXPECT_EQ(error_of([] { Compose({ToTensor(), ToTensor()}); }), "Compose: ToTensor is there twice");
  for (const Transform& last : {Transform(ToTensor()), Transform(PILToTensor()), Transform(Normalize({0}, {1}))})
    EXPECT_EQ(error_of([&] {
                Compose({PILToTensor(), last});
              }),
              "Compose: nothing comes after PILToTensor; Normalize is called on the batch");
  EXPECT_FALSE(Compose({ToTensor()}).keeps_bytes());
  EXPECT_TRUE(Compose({PILToTensor()}).keeps_bytes());
  const Normalize two({0, 1}, {1, 2});
  EXPECT_EQ(error_of([&] { two(zeros({1, 3, 2, 2}, u8)); }), "Normalize: 2 means for 3 channels (images: u8[1,3,2,2])");
  EXPECT_EQ(error_of([&] {
              two(zeros({1, 2, 2, 2}, i64));
            }),
            "Normalize: the images must be u8 or float [N,C,H,W] (images: i64[1,2,2,2])");
  EXPECT_EQ(error_of([&] {
              two(zeros({2, 2, 2}, u8));
            }),
            "Normalize: the images must be u8 or float [N,C,H,W] (images: u8[2,2,2])");
  EXPECT_THROW(Compose({ImageTransform()}), UserError);
  EXPECT_THROW(Normalize({0}, {1, 2}), UserError);
  EXPECT_THROW(Normalize({0}, {0}), UserError);
}

}  // namespace
}  // namespace fusejit::data
