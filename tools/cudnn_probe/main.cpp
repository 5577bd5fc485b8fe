// cudnn_probe: asks cuDNN, without a GPU, what it can fuse into convolutions, and writes the table that the run time
// reads (runtime/cudnn/support/support_table.inc) and its readable form (in docs/cudnn.md). Cells that are not asked
// for keep what they have, so the table can be made in parts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>

#include "fusejit/error.h"
#include "runtime/cudnn/library/device.h"
#include "runtime/cudnn/support/probe.h"
#include "tools/cudnn_probe/reason_log.h"
#include "tools/cudnn_probe/table.h"
#include "tools/output.h"

namespace fusejit::cudnn_probe {
namespace {

using namespace fusejit::runtime::cudnn;

struct Options {
  std::string driver, table, markdown;
  std::vector<std::string> classes, rows;
  std::vector<int> architectures;
  bool missing_only = false, precompiled_only = false;
};

template <typename T>
bool wanted(const std::vector<T>& list, const T& item) {
  return list.empty() || std::count(list.begin(), list.end(), item) > 0;
}

// One sentence for a cell without engine: a numeric refusal, else a failure to build, else cuDNN's log.
std::string reason_of(const Probe& probe, const std::string& logged) {
  std::string failure;
  for (const EngineRefusal& refusal : probe.refused.refusals) {
    if (refusal.engine < 0) continue;
    const bool ours = refusal.reason.find("cuDNN:") == std::string::npos;
    if (ours) return "the engine that would is not allowed: " + refusal.reason;
    failure = refusal.reason.find("COMPILATION_FAILED") != std::string::npos
                  ? "an engine is offered, and the code that it generates does not compile"
                  : refusal.reason;
  }
  if (!failure.empty()) return failure;
  if (!logged.empty()) return logged;
  return probe.refused.refusals.empty() ? "no engine is offered, and no reason given"
                                        : probe.refused.refusals[0].reason;
}

void fill(Table& table, const Options& options) {
  ReasonLog log;
  const auto library = Library::load();
  if (!library->available()) throw DeviceError(library->why_not());
  if (!load_driver_for_planning(options.driver)) {
    throw DeviceError("no libcuda.so.1, and no substitute: runtime-compiled engines cannot be planned");
  }
  table.version = library->version();
  int count = 0;
  for (std::size_t s = 0; s < shape_classes().size(); ++s) {
    if (!wanted(options.classes, std::string(shape_classes()[s].name))) continue;
    for (int c = 0; c < kColumns; ++c) {
      const Column at = column(c);
      if (!wanted(options.architectures, at.compute_capability)) continue;
      const Descriptor device = describe_device(library, *device_of(at.compute_capability));
      for (std::size_t p = 0; p < patterns().size(); ++p) {
        if (!wanted(options.rows, std::string(patterns()[p].name))) continue;
        Cell& cell = table.cell(static_cast<int>(p), static_cast<int>(s), c);
        if (options.missing_only && cell.state != '?') continue;
        log.take();
        const auto start = std::chrono::steady_clock::now();
        const Probe found =
            probe(library, device, sample_call(patterns()[p], static_cast<int>(s), at),
                  Numerics{.tf32 = at.tf32, .nondeterministic = false, .winograd = false}, !options.precompiled_only);
        cell = {found.cell, found.cell == '-' ? reason_of(found, log.take()) : ""};
        const auto ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
        std::cerr << fmt::format("{} {:<10} {:<50} {} {:6.0f} ms {}\n", at.name(), shape_classes()[s].name,
                                 patterns()[p].name, cell.state, ms, cell.reason);
        if (++count % 50 == 0 && !options.table.empty()) write_table(table, options.table);
      }
    }
  }
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("asks cuDNN, without a GPU, what it can fuse into convolutions");
  app.add_option("--table", options.table, "write the table as C++ (runtime/cudnn/support/support_table.inc)");
  app.add_option("--markdown", options.markdown, "write the table into a page (docs/cudnn.md)");
  app.add_option("--driver", options.driver, "a libcuda.so.1 without device, where the machine has none");
  app.add_option("--class", options.classes, "only these classes of shapes")->delimiter(',');
  app.add_option("--row", options.rows, "only these patterns");
  app.add_option("--arch", options.architectures, "only these architectures (80, 90, 100)")->delimiter(',');
  app.add_flag("--missing", options.missing_only, "only cells that were never probed");
  app.add_flag("--precompiled", options.precompiled_only, "compile nothing: find cells with precompiled engines only");
  bool as_is = false;
  app.add_flag("--no-probe", as_is, "write the table as it is");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    tools::finish_output();
    return code;
  }
  if (options.driver.empty()) options.driver = FUSEJIT_DRIVER_WITHOUT_DEVICE;
  Table table = compiled_in_table();
  if (!as_is) fill(table, options);
  if (!options.table.empty()) write_table(table, options.table);
  if (!options.markdown.empty()) write_markdown(table, options.markdown);
  return 0;
}

}  // namespace
}  // namespace fusejit::cudnn_probe

int main(int argc, char** argv) {
  try {
    return fusejit::cudnn_probe::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "cudnn_probe: " << error.what() << '\n';
    return 1;
  }
}
