// Training the digits network on an image set, testing it, and measuring its three modes.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "fusejit/fusejit.h"

namespace fusejit::tools {

struct Job {
  int epochs = 2;
  std::int64_t batch = 250;
  int threads = 0;
  std::string rules = "all";
  std::string engine = "compiled";
  std::string target = "host";
  std::string device = "cpu";
  std::uint64_t seed = 1;
  double mean = 0.2860, deviation = 0.3530;  // of pixels as 0..1: Fashion-MNIST's; MNIST's are 0.1307 and 0.3081
  std::int64_t limit = 0;                    // > 0: no more images an epoch than this, and no more test images
  int measured_steps = 5;
};

struct EpochResult {
  double loss = 0;      // the last one
  double accuracy = 0;  // 0..1 on the test images
  double seconds = 0;
  double images_per_second = 0;
};

struct TrainingResult {
  std::vector<EpochResult> epochs;
  std::vector<double> losses;           // every step's
  bool stopped = false;                 // by `stop`
  std::vector<std::int64_t> predicted;  // of the first test images
};

// Trains `net` and prints as it goes; ends early, after a whole step, when `stop` becomes true.
TrainingResult train(nn::Sequential& net, const Job& job, std::shared_ptr<const data::ImageSet> train_set,
                     std::shared_ptr<const data::ImageSet> test_set, const std::atomic<bool>& stop);

struct Mode {
  std::string name;  // in the table
  std::string key;   // in the JSON
  std::string rules;
  models::ConvnetForm form;
};
const std::vector<Mode>& modes();

struct ModeResult {
  double ms_per_step = 0, images_per_s = 0;
  std::int64_t peak_bytes = 0, end_of_forward_bytes = 0, ledger_bytes = 0, kernels = 0;
  double compile_ms = 0;
  std::int64_t plan_cache_hits = 0;
  double loss = 0;  // after the measured steps
};

// A few steps of a fresh network in a session of its own; fewer, and then no result, when `stop` becomes true.
ModeResult measure(const Mode& mode, const Job& job, std::shared_ptr<const data::ImageSet> train_set,
                   const std::atomic<bool>& stop);

}  // namespace fusejit::tools
