// DataLoader: the same batches for any number of workers, who may fail, be late or be left alone at any moment.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <set>
#include <stdexcept>
#include <thread>

#include "fusejit/data.h"
#include "fusejit/grad.h"
#include "fusejit/memory.h"
#include "fusejit/ops.h"
#include "fusejit/random.h"
#include "fusejit/runtime.h"
#include "tests/support/error_of.h"

namespace fusejit::data {
namespace {

using fusejit::testing::error_of;

// Images whose pixels say where they are and which image they are of; counts the threads that are in get().
struct Numbered : Dataset {
  explicit Numbered(std::int64_t count, int milliseconds = 0) : count(count), milliseconds(milliseconds) {}
  std::int64_t size() const override { return count; }
  Example get(std::int64_t index) const override {
    ++calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    Image image{6, 8, 3, {}};
    for (int i = 0; i < 6 * 8 * 3; ++i) image.pixels.push_back(static_cast<std::uint8_t>(i + index));
    return {std::move(image), index};
  }
  std::int64_t count;
  int milliseconds;
  mutable std::atomic<int> calls = 0;
};

using Values = std::pair<std::vector<float>, std::vector<std::int64_t>>;

std::vector<Values> epochs_of(DataLoader& loader, int epochs) {
  std::vector<Values> all;
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (auto [x, y] : loader) all.emplace_back(x.to_vector<float>(), y.to_vector<std::int64_t>());
  return all;
}

DataLoaderOptions augmented(int workers) {
  return {.batch_size = 4,
          .shuffle = true,
          .num_workers = workers,
          .transform = Compose({RandomResizedCrop(5), RandomHorizontalFlip(), ToTensor(), Normalize({0.5}, {0.25})}),
          .seed = 3};
}

TEST(DataLoader, BatchesDependOnTheSeedAloneWhateverTheWorkers) {
  const auto dataset = std::make_shared<const Numbered>(23);
  DataLoader one(dataset, augmented(0));
  const std::vector<Values> expected = epochs_of(one, 3);
  ASSERT_EQ(expected.size(), 18u);
  EXPECT_EQ(one.size(), 6);
  for (const int workers : {1, 2, 3, 7, 40}) {
    DataLoader loader(dataset, augmented(workers));
    EXPECT_EQ(epochs_of(loader, 3), expected) << workers << " workers";
  }
  std::set<std::vector<std::int64_t>> orders;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int64_t> order;
    for (std::size_t b = 0; b < 6; ++b) {
      const std::vector<std::int64_t>& labels = expected[static_cast<std::size_t>(epoch) * 6 + b].second;
      order.insert(order.end(), labels.begin(), labels.end());
    }
    EXPECT_EQ(order.size(), 23u);
    EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), 23u);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 3u) << "another order each epoch";
  DataLoader later(dataset, augmented(2));
  later.set_epoch(2);
  EXPECT_EQ(epochs_of(later, 1), std::vector<Values>(expected.begin() + 12, expected.end()));
  DataLoaderOptions other = augmented(0);
  other.seed = 4;
  DataLoader reseeded(dataset, other);
  EXPECT_NE(epochs_of(reseeded, 3), expected);
}

TEST(DataLoader, AnExampleDoesNotDependOnItsBatch) {
  const auto dataset = std::make_shared<const Numbered>(12);
  std::vector<std::vector<float>> runs;
  for (const std::int64_t batch_size : {3, 4}) {
    DataLoaderOptions options = augmented(0);
    options.batch_size = batch_size;
    DataLoader loader(dataset, options);
    std::vector<float>& all = runs.emplace_back();
    for (const auto& [x, y] : epochs_of(loader, 2)) all.insert(all.end(), x.begin(), x.end());
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST(DataLoader, WithoutASeedDrawsFromTheDefaultGenerator) {
  DataLoaderOptions options = augmented(0);
  options.seed.reset();
  std::vector<std::vector<Values>> runs;
  for (int i = 0; i < 2; ++i) {
    manual_seed(8);
    DataLoader loader(std::make_shared<const Numbered>(9), options);
    runs.push_back(epochs_of(loader, 1));
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST(DataLoader, ImagesAreChannelsOfNumbersInEitherLayout) {
  const Image image{2, 3, 2, {0, 51, 1, 52, 2, 53, 3, 54, 4, 55, 5, 56}};
  struct One : Dataset {
    explicit One(Image image) : image(std::move(image)) {}
    std::int64_t size() const override { return 2; }
    Example get(std::int64_t) const override { return {image, 7}; }
    Image image;
  };
  const auto dataset = std::make_shared<const One>(image);
  std::vector<float> expected;
  for (int n = 0; n < 2; ++n)
    for (int c = 0; c < 2; ++c)
      for (int i = 0; i < 6; ++i)
        expected.push_back((static_cast<float>(51 * c + i) / 255.0f - 0.5f) / (c ? 2.0f : 0.25f));
  for (const Layout layout : {Layout::standard, Layout::nhwc}) {
    DataLoader loader(dataset,
                      {.batch_size = 2, .transform = Compose({Normalize({0.5, 0.5}, {0.25, 2})}), .layout = layout});
    for (const auto& [x, y] : loader) {
      EXPECT_EQ(x.type(), (Type{f32, {2, 2, 2, 3}, layout}));
      EXPECT_EQ(x.to_vector<float>(), expected);
      EXPECT_EQ(relu(x).sum().item<float>(), relu(from_host(expected, {2, 2, 2, 3})).sum().item<float>());
      EXPECT_EQ(y.to_vector<std::int64_t>(), (std::vector<std::int64_t>{7, 7}));
    }
  }
}

// A quarter of the memory; normalised where it is read, it is what ToTensor and Normalize make, to the bit.
TEST(DataLoader, BytesStayBytesAndAreNormalisedInTheGraph) {
  const auto dataset = std::make_shared<const Numbered>(6);
  const std::vector<double> mean = {0.485, 0.456, 0.406}, deviation = {0.229, 0.224, 0.225};
  const Normalize normalize(mean, deviation);
  for (const Layout layout : {Layout::standard, Layout::nhwc}) {
    DataLoaderOptions options = {.batch_size = 4, .shuffle = true, .num_workers = 2, .layout = layout, .seed = 3};
    options.transform = Compose({RandomHorizontalFlip(), PILToTensor()});
    DataLoader bytes(dataset, options);
    options.transform = Compose({RandomHorizontalFlip(), ToTensor(), normalize});
    DataLoader floats(dataset, options);
    options.transform = Compose({RandomHorizontalFlip()});
    DataLoader plain(dataset, options);
    auto b = bytes.begin();
    auto p = plain.begin();
    for (const auto& [x, y] : floats) {
      EXPECT_EQ(b->images.type(), (Type{u8, x.shape(), layout}));
      EXPECT_EQ(b->labels.to_vector<int>(), y.to_vector<int>());
      EXPECT_EQ(normalize(b->images).to_vector<float>(), x.to_vector<float>());
      EXPECT_EQ(normalize(p->images).to_vector<float>(), x.to_vector<float>()) << "of floats";
      ++b, ++p;
    }
    EXPECT_TRUE(b == bytes.end());
  }
}

TEST(DataLoader, ANetworkComputesTheSameFromEitherLayout) {
  std::vector<std::vector<float>> results;
  for (const Layout layout : {Layout::standard, Layout::nhwc}) {
    DataLoaderOptions options = augmented(1);
    options.layout = layout;
    DataLoader loader(std::make_shared<const Numbered>(4), options);
    Tensor w = (arange(4 * 3 * 9, f32) / 50 - 1).reshape({4, 3, 3, 3}).requires_grad();
    const Tensor y = relu(conv2d(loader.begin()->images, w));
    results.push_back(grad(sum(y * y), {w})[0].to_vector<float>());
  }
  for (std::size_t i = 0; i < results[0].size(); ++i)
    EXPECT_NEAR(results[0][i], results[1][i], 1e-4 * std::abs(results[0][i]) + 1e-3) << "sums in another order";
}

TEST(DataLoader, TheLastBatchIsSmallerOrLeftOut) {
  const auto dataset = std::make_shared<const Numbered>(7);
  for (const int workers : {0, 2}) {
    std::vector<std::int64_t> sizes;
    for (auto [x, y] : DataLoader(dataset, {.batch_size = 3, .num_workers = workers})) sizes.push_back(x.size(0));
    EXPECT_EQ(sizes, (std::vector<std::int64_t>{3, 3, 1}));
    sizes.clear();
    DataLoader even(dataset, {.batch_size = 3, .drop_last = true, .num_workers = workers});
    for (auto [x, y] : even) sizes.push_back(y.size(0));
    EXPECT_EQ(sizes, (std::vector<std::int64_t>{3, 3}));
    EXPECT_EQ(even.size(), 2);
    DataLoader none(std::make_shared<const Numbered>(0), {.num_workers = workers});
    EXPECT_TRUE(none.begin() == none.end());
    DataLoader few(std::make_shared<const Numbered>(2), {.batch_size = 3, .drop_last = true, .num_workers = workers});
    EXPECT_TRUE(few.begin() == few.end());
  }
}

TEST(DataLoader, ArraysKeepTheirDtypes) {
  const auto rows = std::make_shared<const TensorDataset>(arange(12, f64).reshape({4, 3}), arange(4, i32));
  DataLoader loader(rows, {.batch_size = 3, .num_workers = 2});
  auto batch = loader.begin();
  EXPECT_EQ(batch->images.type().str() + batch->labels.type().str(), "f64[3,3]i32[3]");
  EXPECT_EQ(batch->images.to_vector<double>(), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  ++batch;
  EXPECT_EQ(batch->labels.to_vector<int>(), std::vector<int>{3});
  EXPECT_TRUE(++batch == loader.end());
  EXPECT_EQ(error_of([&] { ++batch; }), "data loader: there is nothing behind the end of an epoch");
}

// Fails at one example, in a way that it is told.
struct Failing : Numbered {
  Failing(std::int64_t count, std::int64_t at, std::function<void()> fail)
      : Numbered(count), at(at), fail(std::move(fail)) {}
  Example get(std::int64_t index) const override {
    if (index == at) fail();
    return Numbered::get(index);
  }
  std::int64_t at;
  std::function<void()> fail;
};

TEST(DataLoader, AnErrorArrivesWithTheNameOfItsExample) {
  for (const int workers : {0, 1, 3}) {
    const auto run = [&](std::function<void()> fail, int& seen) {
      DataLoader loader(std::make_shared<const Failing>(20, 9, std::move(fail)),
                        {.batch_size = 2, .num_workers = workers});
      for (auto [x, y] : loader) ++seen;
    };
    int seen = 0;
    EXPECT_EQ(error_of([&] { run([] { throw UserError("no such thing"); }, seen); }), "example 9: no such thing");
    EXPECT_EQ(seen, 4) << "what comes before it";
    EXPECT_EQ(error_of<FileError>([&] { run([] { throw FileError("example 9: is gone"); }, seen); }),
              "example 9: is gone");
    EXPECT_EQ(error_of([&] { run([] { throw std::out_of_range("vector"); }, seen); }), "example 9: vector");
    EXPECT_THROW(run([] { throw std::bad_alloc(); }, seen), std::bad_alloc);
    EXPECT_THROW(run([] { throw 5; }, seen), int);
    try {
      run([] { throw std::out_of_range("vector"); }, seen);
    } catch (const UserError& error) {
      EXPECT_THROW(std::rethrow_if_nested(error), std::out_of_range);
    }
  }
}

TEST(DataLoader, AnErrorEndsItsEpochAndNoOther) {
  int calls = 0;
  DataLoader loader(std::make_shared<const Failing>(8, 3,
                                                    [&] {
                                                      if (calls++ == 0) throw UserError("once");
                                                    }),
                    {.batch_size = 2, .num_workers = 1});
  EXPECT_THROW(epochs_of(loader, 1), UserError);
  EXPECT_EQ(epochs_of(loader, 1).size(), 4u);
}

TEST(DataLoader, ExamplesOfABatchAreOfOneKind) {
  struct Mixed : Dataset {
    std::int64_t size() const override { return 2; }
    Example get(std::int64_t i) const override {
      return {Image{i + 1, 2, 1, std::vector<std::uint8_t>(2 * (i + 1))}, i};
    }
  };
  DataLoader loader(std::make_shared<const Mixed>(), {.batch_size = 2});
  EXPECT_EQ(error_of([&] { loader.begin(); }),
            "example 1: is f32[1,2,2] in a batch that began with f32[1,1,2]: all examples of a batch have one dtype "
            "and shape");
  struct Broken : Mixed {
    Example get(std::int64_t i) const override { return {Image{2, 2, 1, {1}}, i}; }
  };
  DataLoader broken(std::make_shared<const Broken>());
  EXPECT_EQ(error_of([&] { broken.begin(); }), "example 0: the image has 2 x 2 pixels with 1 channels and 1 bytes");
}

TEST(DataLoader, WorkersStopWhereTheLoopIsLeft) {
  const auto dataset = std::make_shared<const Numbered>(100'000, 1);
  const auto start = std::chrono::steady_clock::now();
  int calls = 0;
  {
    DataLoader loader(dataset, {.batch_size = 1000, .num_workers = 3});
    const auto never_used = loader.begin();
    calls = dataset->calls;
  }
  EXPECT_LT(dataset->calls - calls, 100) << "an example of each worker, not a batch";
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(DataLoader, NoMoreBatchesAreMadeAheadThanWasSaid) {
  const auto dataset = std::make_shared<const Numbered>(1000);
  DataLoader loader(dataset, {.batch_size = 10, .num_workers = 2, .prefetch_factor = 2});
  auto batch = loader.begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LE(dataset->calls, 10 * (1 + 4));
  ++batch;
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LE(dataset->calls, 10 * (2 + 4));
}

TEST(DataLoader, MemoryOfABatchGoesWithIt) {
  DataLoader loader(std::make_shared<const Numbered>(400), {.batch_size = 100});
  const std::int64_t before = memory::allocated();
  memory::reset_peak();
  std::int64_t batches = 0;
  for (auto batch = loader.begin(); batch != loader.end(); ++batch) ++batches;
  EXPECT_EQ(batches, 4);
  EXPECT_LE(memory::peak() - before, 100 * (6 * 8 * 3 * 4 + 8) + 4096) << "one batch at a time";
  EXPECT_EQ(memory::allocated(), before);
}

TEST(DataLoader, AChildOfForkBeginsAgain) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer has no threads in a child of a process with threads";
#endif
  DataLoader loader(std::make_shared<const Numbered>(40), {.batch_size = 2, .num_workers = 2});
  auto batch = loader.begin();
  const pid_t child = ::fork();
  if (child == 0) {
    bool is_refused = false;
    try {
      ++batch;
    } catch (const UserError&) {
      is_refused = true;
    }
    std::size_t batches = 0;
    for (auto [x, y] : loader) ++batches;
    ::_exit(is_refused && batches == 20 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ++batch;
  EXPECT_EQ(batch->labels.to_vector<std::int64_t>(), (std::vector<std::int64_t>{2, 3}));
}

TEST(DataLoader, WrongOptionsAreSentences) {
  const auto dataset = std::make_shared<const Numbered>(4);
  EXPECT_EQ(error_of([&] { DataLoader(dataset, {.batch_size = 0}); }),
            "data loader: batch_size is 0, it must be at least 1");
  EXPECT_EQ(error_of([&] { DataLoader(dataset, {.num_workers = -1}); }),
            "data loader: num_workers is -1, it must not be negative");
  EXPECT_EQ(error_of([&] { DataLoader(dataset, {.num_workers = 1, .prefetch_factor = 0}); }),
            "data loader: prefetch_factor is 0, it must be at least 1");
  EXPECT_EQ(error_of([&] { DataLoader(nullptr); }), "data loader: there is no dataset");
  EXPECT_THROW(DataLoader(dataset).set_epoch(-1), UserError);
}

}  // namespace
}  // namespace fusejit::data
