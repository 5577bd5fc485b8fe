// train_convnet: trains the digits network on real images, shows how it goes, and compares unfused, fused, and fused
// with layers that save only their input: by memory and time, and with --layers both by what they learn.
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <span>

#include "frontend/io/files.h"
#include "fusejit/target.h"
#include "ir/base/check.h"
#include "tools/output.h"
#include "tools/train_convnet/training.h"

namespace fusejit::tools {
namespace {

std::atomic<bool> g_stop{false};
std::atomic<int> g_signal{0};

// The first Ctrl-C ends the training or the measuring after the step; a second one ends the process. SIGTERM likewise,
// and then the exit code says so, for whoever sent it.
void watch_for_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { g_signal = signal, g_stop = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

const std::vector<std::string>& label_names() {
  static const std::vector<std::string> kNames = {"T-SHIRT", "TROUSER", "PULLOVER", "DRESS", "COAT",
                                                  "SANDAL",  "SHIRT",   "SNEAKER",  "BAG",   "BOOT"};
  return kNames;
}

std::string mebibytes(std::int64_t bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); }

void print_table(const std::vector<std::pair<Mode, ModeResult>>& rows, std::int64_t batch) {
  say("\nOne training step at batch {}:\n\n", batch);
  say("{:<24} {:>10} {:>10} {:>12} {:>14} {:>12} {:>8} {:>11} {:>6}\n", "", "ms/step", "images/s", "peak",
      "end of forward", "ledger/step", "kernels", "compile ms", "hits");
  for (const auto& [mode, r] : rows) {
    say("{:<24} {:>10.2f} {:>10.0f} {:>12} {:>14} {:>12} {:>8} {:>11.0f} {:>6}\n", mode.name, r.ms_per_step,
        r.images_per_s, mebibytes(r.peak_bytes), mebibytes(r.end_of_forward_bytes), mebibytes(r.ledger_bytes),
        r.kernels, r.compile_ms, r.plan_cache_hits);
  }
}

// One form of the layers, and what the network learned with it.
struct Trained {
  const char* name;  // in the table
  const char* key;   // in the JSON and on the command line
  models::ConvnetForm form;
  TrainingResult result;

  bool is_trained() const { return !result.epochs.empty(); }
  double loss() const { return is_trained() ? result.epochs.back().loss : 0.0; }
  double accuracy() const { return is_trained() ? result.epochs.back().accuracy : 0.0; }
};

// Of `layers`: ordinary, save_input, both.
std::vector<Trained> chosen(const std::string& layers) {
  std::vector<Trained> forms = {{"ordinary", "ordinary", models::ConvnetForm::ordinary, {}},
                                {"save-only-input", "save_input", models::ConvnetForm::save_input, {}}};
  std::erase_if(forms, [&](const Trained& form) { return layers != "both" && layers != form.key; });
  return forms;
}

void print_forms(const std::vector<Trained>& forms) {
  say("\n{:<24} {:>10} {:>14}\n", "layers", "loss", "test accuracy");
  for (const Trained& t : forms) {
    if (t.is_trained()) say("{:<24} {:>10.4f} {:>12.2f} %\n", t.name, t.loss(), 100 * t.accuracy());
  }
}

nlohmann::json report(const Job& job, const std::vector<Trained>& forms,
                      const std::vector<std::pair<Mode, ModeResult>>& rows) {
  const TrainingResult& training = forms.front().result;
  nlohmann::json json;
  json["accuracy"] = forms.front().accuracy();
  json["stopped"] = std::any_of(forms.begin(), forms.end(), [](const Trained& t) { return t.result.stopped; });
  json["batch"] = job.batch;
  json["device"] = job.device;
  json["seed"] = job.seed;
  json["losses"] = training.losses;
  for (const EpochResult& e : training.epochs) {
    json["epochs"].push_back(
        {{"loss", e.loss}, {"accuracy", e.accuracy}, {"seconds", e.seconds}, {"images_per_s", e.images_per_second}});
  }
  for (const Trained& t : forms) {
    if (!t.is_trained()) continue;
    json["layers"][t.key] = {{"loss", t.loss()}, {"accuracy", t.accuracy()}, {"losses", t.result.losses}};
  }
  for (const auto& [mode, r] : rows) {
    json["modes"][mode.key] = {{"ms_per_step", r.ms_per_step},
                               {"images_per_s", r.images_per_s},
                               {"peak_bytes", r.peak_bytes},
                               {"end_of_forward_bytes", r.end_of_forward_bytes},
                               {"ledger_bytes", r.ledger_bytes},
                               {"kernels", r.kernels},
                               {"compile_ms", r.compile_ms},
                               {"plan_cache_hits", r.plan_cache_hits},
                               {"loss", r.loss}};
  }
  return json;
}

// The network is built for these.
void check_images(const data::ImageSet& set, const char* which, const std::string& directory) {
  constexpr std::int64_t kSide = 28, kLabels = 10;
  FJ_CHECK(set.height == kSide && set.width == kSide, "{}: the {} images are {} x {}, this network takes {} x {}",
           directory, which, set.height, set.width, kSide, kSide);
  for (std::size_t i = 0; i < set.labels.size(); ++i)
    FJ_CHECK(set.labels[i] < kLabels, "{}: the label of {} image {} is {}, labels are 0 to {}", directory, which, i,
             set.labels[i], kLabels - 1);
}

struct Paths {
  std::string data = data::kFashionMnist, save, json, png = "predictions.png";
};

int run(const Job& job, const std::string& layers, const Paths& paths) {
  for (const std::string& path : {paths.save, paths.json, paths.png})
    if (!path.empty()) io::check_writable(path);  // said now, not after the training
  if (const std::string why = why_unavailable(Device(job.device)); !why.empty()) throw DeviceError(why);
  FJ_CHECK(!Device(job.device).is_cpu() || job.engine != "compiled" || Target::parse(job.target).isa != Isa::cuda,
           "--target {} is for a CUDA device, --device is {}: there is no compiled code of that target for it",
           job.target, job.device);
  watch_for_interrupts();
  const auto train_set = std::make_shared<const data::ImageSet>(data::load_images(paths.data, data::Split::train));
  const auto test_set = std::make_shared<const data::ImageSet>(data::load_images(paths.data, data::Split::test));
  check_images(*train_set, "training", paths.data);
  check_images(*test_set, "test", paths.data);
  say("{} training and {} test images of {} x {} from {}\n", train_set->count, test_set->count, train_set->height,
      train_set->width, paths.data);
  std::vector<Trained> forms = chosen(layers);
  for (Trained& t : forms) {
    if (forms.size() > 1) say("\n{} layers\n", t.name);
    manual_seed(job.seed);
    nn::Sequential net = models::convnet(t.form);
    t.result = train(net, job, train_set, test_set, g_stop);
    if (&t != &forms.front() || paths.save.empty()) continue;
    net.save(paths.save);
    say("parameters saved in {}\n", paths.save);
  }
  const TrainingResult& training = forms.front().result;
  if (!paths.png.empty() && !training.predicted.empty()) {
    std::vector<std::int64_t> which, predicted;
    for (std::size_t i = 0; i < std::min<std::size_t>(60, training.predicted.size()); ++i) {
      which.push_back(static_cast<std::int64_t>(i));
      predicted.push_back(training.predicted[i]);
    }
    data::save_contact_sheet(paths.png, *test_set, which, predicted, label_names());
    say("{} test images with predicted and true labels: {}\n", which.size(), paths.png);
  }
  std::vector<std::pair<Mode, ModeResult>> rows;
  for (const Mode& mode : modes()) {
    if (g_stop || job.measured_steps == 0) break;
    ModeResult row = measure(mode, job, train_set, g_stop);
    if (!g_stop) rows.emplace_back(mode, std::move(row));
  }
  std::size_t steps = 0;
  for (const Trained& t : forms) steps += t.result.losses.size();
  if (g_stop) say("stopped after {} steps\n", steps);
  if (forms.front().is_trained()) say("test accuracy {:.2f} %\n", 100 * forms.front().accuracy());
  if (forms.front().is_trained() && forms.size() > 1) print_forms(forms);
  if (!rows.empty()) print_table(rows, job.batch);
  if (!paths.json.empty()) {
    const std::string json = report(job, forms, rows).dump(2) + '\n';
    io::write_file(paths.json, std::as_bytes(std::span(json)));
  }
  finish_output();
  return g_signal == SIGTERM ? 128 + SIGTERM : 0;
}

// What CLI11 would take for a number, but is none: "-1" wraps, 2^64 is cut.
std::string why_no_seed(const std::string& text) {
  const char* const end = text.data() + text.size();
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && !text.empty()
             ? ""
             : fmt::format("Value {} not in range 0 to {}", text, std::numeric_limits<std::uint64_t>::max());
}

}  // namespace
}  // namespace fusejit::tools

int main(int argc, char** argv) {
  using namespace fusejit;
  tools::Job job;
  tools::Paths paths;
  std::string layers = "ordinary";
  std::string help;  // it was asked for
  tools::expect_full_files();
  CLI::App app("Trains the convolution + batch-norm network on Fashion-MNIST.", "train_convnet");
  const auto fail = [](const char* sentence, int code) {
    std::fprintf(stderr, "train_convnet: error: %s\n", sentence);
    return code;
  };
  app.add_option("--epochs", job.epochs, "epochs to train")->capture_default_str()->check(CLI::Range(0, 10000));
  app.add_option("--batch", job.batch, "images a step")->capture_default_str()->check(CLI::Range(1, 1 << 20));
  app.add_option("--threads", job.threads, "threads; 0: every processor")->check(CLI::Range(0, 1024));
  app.add_option("--rules", job.rules, "fusion rules of the training: all, none")
      ->check(CLI::IsMember({"all", "none"}));
  app.add_option("--layers", layers, "what is trained: ordinary, save_input, or both beside each other")
      ->capture_default_str()
      ->check(CLI::IsMember({"ordinary", "save_input", "both"}));
  app.add_option("--data", paths.data, "directory of the IDX files")->capture_default_str();
  app.add_option("--mean", job.mean, "of pixels as 0 to 1, subtracted (MNIST: 0.1307)")->capture_default_str();
  app.add_option("--deviation", job.deviation, "what is divided by after that (MNIST: 0.3081)")->capture_default_str();
  app.add_option("--seed", job.seed, "seed of weights, order and dropout")
      ->capture_default_str()
      ->check(tools::why_no_seed);
  app.add_option("--save", paths.save, "write the trained parameters as .npz, or .safetensors by its name");
  app.add_option("--json", paths.json, "write the results as JSON");
  app.add_option("--png", paths.png, "picture of test images with their labels; empty: none")->capture_default_str();
  app.add_option("--limit", job.limit, "use only so many images; 0: all")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  app.add_option("--measure", job.measured_steps, "steps that each row of the table measures; 0: no table")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000));
  app.add_option("--engine", job.engine, "compiled, graph_interpreter, kernel_interpreter")->capture_default_str();
  app.add_option("--target", job.target, "host, x86:avx512, x86:avx2, x86:v2")->capture_default_str();
  app.add_option("--device", job.device, "cpu or cuda:0")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return fail(error.what(), 1);
    help = error.get_name();
    app.exit(error);
  }
  try {
    if (!help.empty()) return tools::finish_output(), 0;
    return tools::run(job, layers, paths);
  } catch (const UserError& error) {
    return fail(error.what(), 2);
  } catch (const UnsupportedError& error) {
    return fail(error.what(), 4);
  } catch (const FileError& error) {
    return fail(error.what(), 5);
  } catch (const DeviceError& error) {
    return fail(error.what(), 6);
  } catch (const std::bad_alloc&) {
    return fail("cpu: out of memory", 6);
  } catch (const std::exception& error) {
    return fail(error.what(), 7);
  }
}
