// Serves single images from many threads in batches: who asks waits a little for others, and one plan serves them all.
//
//     batching_server
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <iostream>
#include <mutex>
#include <thread>
#include <vector>

#include "fusejit/fusejit.h"

namespace {
namespace fj = fusejit;

// Batches are of 1, 2, 4 or 8 images: four plans, made before the first request. What a batch lacks is zeros.
class Server {
 public:
  Server(fj::Frozen net, fj::Shape image, std::chrono::microseconds patience)
      : net_(std::move(net)), image_(std::move(image)), patience_(patience) {
    for (const std::int64_t n : {1, 2, 4, 8}) net_.compile({fj::f32, {n, image_[0], image_[1], image_[2]}});
    worker_ = std::thread([this] { work(); });
  }
  ~Server() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    come_.notify_all();
    worker_.join();
  }

  // The class of an image [C,H,W] in row-major order. From any thread.
  std::future<std::int64_t> ask(std::vector<float> pixels) {
    const std::lock_guard lock(mutex_);
    open_.push_back({std::move(pixels), {}});
    come_.notify_one();
    return open_.back().answer.get_future();
  }
  std::int64_t batches() const { return batches_; }  // when nobody asks any more

 private:
  struct Request {
    std::vector<float> pixels;
    std::promise<std::int64_t> answer;
  };

  void work() {
    for (;;) {
      std::vector<Request> batch;
      {
        std::unique_lock lock(mutex_);
        come_.wait(lock, [this] { return closing_ || !open_.empty(); });
        if (open_.empty()) return;
        come_.wait_for(lock, patience_, [this] { return closing_ || open_.size() >= 8; });
        for (; !open_.empty() && batch.size() < 8; open_.pop_front()) batch.push_back(std::move(open_.front()));
      }
      try {
        answer(batch);
      } catch (...) {  // nobody waits for ever
        for (Request& request : batch) request.answer.set_exception(std::current_exception());
      }
    }
  }

  void answer(std::vector<Request>& batch) {
    std::int64_t n = 1;
    while (n < static_cast<std::int64_t>(batch.size())) n *= 2;
    const auto count = static_cast<std::size_t>(image_.elements());
    std::vector<float> pixels(static_cast<std::size_t>(n) * count);
    for (std::size_t i = 0; i < batch.size(); ++i)
      std::copy(batch[i].pixels.begin(), batch[i].pixels.end(),
                pixels.begin() + static_cast<std::ptrdiff_t>(i * count));
    const fj::Tensor x = fj::borrow(pixels.data(), {n, image_[0], image_[1], image_[2]});
    const std::vector<std::int64_t> classes = fj::argmax(net_(x), 1).to_vector<std::int64_t>();
    ++batches_;  // before anybody who waits may ask for it
    for (std::size_t i = 0; i < batch.size(); ++i) batch[i].answer.set_value(classes[i]);
  }

  fj::Frozen net_;
  fj::Shape image_;
  std::chrono::microseconds patience_;
  std::mutex mutex_;
  std::condition_variable come_;
  std::deque<Request> open_;
  bool closing_ = false;
  std::int64_t batches_ = 0;
  std::thread worker_;
};

}  // namespace

int main() try {
  constexpr int kRequests = 256;
  fj::manual_seed(1);
  fj::models::ResNet net = fj::models::resnet18(10);
  net.eval();
  const fj::Shape image{3, 32, 32};
  Server server(net.freeze(), image, std::chrono::microseconds(500));
  const std::vector<float> noise = fj::rand(image).to_vector<float>();

  const auto began = std::chrono::steady_clock::now();
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c)
    clients.emplace_back([&, c] {
      for (int i = c; i < kRequests; i += 8) server.ask(noise).get();
    });
  for (std::thread& client : clients) client.join();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  std::cout << kRequests << " images in " << server.batches() << " batches, "
            << static_cast<int>(kRequests / seconds.count()) << " images/s\n";
  if (!std::cout.flush()) throw fj::FileError("standard output cannot be written");
} catch (const std::exception& error) {
  std::cerr << "batching_server: " << error.what() << '\n';
  return 1;
}
