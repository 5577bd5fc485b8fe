#include "fusejit/profile.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "fusejit/runtime.h"
#include "fusejit/target.h"
#include "ir/base/check.h"
#include "runtime/cpu/roofline.h"
#include "runtime/profiler.h"

namespace fusejit {

using runtime::ProfileEvent;
using runtime::Profiler;

struct Profile::State {
  std::int64_t began = 0;
  bool is_stopped = false;
  std::vector<ProfileEvent> events;  // once stopped

  std::vector<ProfileEvent> so_far() const { return is_stopped ? events : Profiler::the().events_since(began); }
};

Profile::Profile() : state_(new State{Profiler::the().start(), false, {}}) {}
Profile::~Profile() {
  stop();
  delete state_;
}

void Profile::stop() {
  if (state_->is_stopped) return;
  state_->events = state_->so_far();
  state_->is_stopped = true;
  Profiler::the().stop();
}

namespace {

bool is_launch(const ProfileEvent& event) { return std::strcmp(event.category, "launch") == 0; }

// "%12 conv2d" -> "conv2d"
std::string op_of(const std::string& text) { return text.substr(text.find(' ') + 1); }

// What a kernel is built around.
std::string anchor_of(const ProfileEvent& event) {
  for (const char* kind : {"conv", "linear", "matmul", "pool", "sum", "mean", "var"}) {
    for (const std::string& op : event.ops) {
      if (op_of(op).find(kind) != std::string::npos) return op_of(op);
    }
  }
  return "element-wise";
}

std::string joined(const std::vector<std::string>& ops) {
  std::string text;
  for (const std::string& op : ops) text += (text.empty() ? "" : ", ") + op_of(op);
  return text;
}

std::string key_of(const ProfileEvent& event, ProfileBy by) {
  if (by == ProfileBy::phase) return is_launch(event) ? "launch" : event.category;
  if (by == ProfileBy::layer) return event.layer.empty() ? "no layer" : event.layer;
  return by == ProfileBy::op ? anchor_of(event) : event.name + ": " + joined(event.ops);
}

int thread_count() {
  const int threads = options().threads;
  return threads > 0 ? threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace

std::vector<Profile::Row> Profile::rows(ProfileBy by) const {
  const std::vector<ProfileEvent> events = state_->so_far();
  std::map<std::string, Row> rows;
  std::set<const Row*> on_device;
  bool any_launch = false;
  for (const ProfileEvent& event : events) {
    any_launch |= is_launch(event) && !event.on_device;
    if (by != ProfileBy::phase && !is_launch(event)) continue;
    Row& row = rows[key_of(event, by)];
    if (by == ProfileBy::kernel) row.name = event.name, row.ops = event.ops;
    ++row.calls;
    row.milliseconds += static_cast<double>(event.end - event.begin) * 1e-6;
    row.bytes += event.bytes;
    row.gflop += event.flop * 1e-9;
    if (event.on_device) on_device.insert(&row);
  }
  const runtime::Roofline roof =
      any_launch && by != ProfileBy::phase ? runtime::roofline(Target::host(), thread_count()) : runtime::Roofline();
  std::vector<Row> sorted;
  for (auto& [key, row] : rows) {
    if (row.name.empty()) row.name = key;
    if (row.milliseconds > 0 && !on_device.contains(&row))
      row.of_roofline = roof.least_milliseconds(row.bytes, row.gflop * 1e9) / row.milliseconds;
    sorted.push_back(std::move(row));
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Row& a, const Row& b) { return a.milliseconds > b.milliseconds; });
  return sorted;
}

std::string Profile::table(ProfileBy by, int most) const {
  const std::vector<Row> all = rows(by);
  double milliseconds = 0, gflop = 0;
  std::int64_t bytes = 0, calls = 0;
  for (const Row& row : all)
    milliseconds += row.milliseconds, gflop += row.gflop, bytes += row.bytes, calls += row.calls;
  if (by == ProfileBy::phase) {
    std::string text = fmt::format("{:>10} {:>8}  {}\n", "ms", "times", "");
    for (const Row& row : all) text += fmt::format("{:>10.3f} {:>8}  {}\n", row.milliseconds, row.calls, row.name);
    return text;
  }
  std::string text = fmt::format("{:>10} {:>6} {:>7} {:>9} {:>9} {:>8} {:>9} {:>6}  {}\n", "ms", "%", "calls",
                                 "ms each", "MiB", "GB/s", "GFLOP/s", "roof %",
                                 by == ProfileBy::op      ? "op"
                                 : by == ProfileBy::layer ? "layer"
                                                          : "kernel");
  const auto line = [&](const Row& row, const std::string& name) {
    const double ms = std::max(row.milliseconds, 1e-9);
    text += fmt::format("{:>10.3f} {:>6.1f} {:>7} {:>9.4f} {:>9.1f} {:>8.1f} {:>9.1f} {:>6}  {}\n", row.milliseconds,
                        100 * row.milliseconds / std::max(milliseconds, 1e-9), row.calls,
                        row.milliseconds / static_cast<double>(std::max<std::int64_t>(row.calls, 1)),
                        static_cast<double>(row.bytes) / (1 << 20), static_cast<double>(row.bytes) / ms * 1e-6,
                        row.gflop / ms * 1e3, row.of_roofline > 0 ? fmt::format("{:.0f}", 100 * row.of_roofline) : "-",
                        name);
  };
  const std::size_t shown = std::min(all.size(), static_cast<std::size_t>(std::max(most, 0)));
  for (std::size_t i = 0; i < shown; ++i)
    line(all[i], all[i].ops.empty() ? all[i].name : all[i].name + ": " + joined(all[i].ops));
  Row rest, sum{"", {}, calls, milliseconds, bytes, gflop, 0};
  for (std::size_t i = shown; i < all.size(); ++i)
    rest.calls += all[i].calls, rest.milliseconds += all[i].milliseconds, rest.bytes += all[i].bytes,
        rest.gflop += all[i].gflop;
  if (shown < all.size()) line(rest, fmt::format("{} more", all.size() - shown));
  line(sum, fmt::format("all; at most {:.1f} MiB in use by plans", static_cast<double>(peak_bytes()) / (1 << 20)));
  return text;
}

std::int64_t Profile::peak_bytes() const {
  std::int64_t most = 0;
  for (const ProfileEvent& event : state_->so_far()) most = std::max(most, event.live_bytes);
  return most;
}

void Profile::trace(const std::string& path) const {
  using Json = nlohmann::json;
  Json list = Json::array();
  constexpr int kDeviceTrack = 1000;  // its kernels run beside what the threads do
  const auto is_on_device = [](const ProfileEvent& event) { return event.on_device; };
  const std::vector<ProfileEvent> events = state_->so_far();
  if (std::any_of(events.begin(), events.end(), is_on_device)) {
    list.push_back(
        {{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", kDeviceTrack}, {"args", {{"name", "CUDA device"}}}});
  }
  for (const ProfileEvent& event : events) {
    const double begin = static_cast<double>(event.begin - state_->began) * 1e-3;
    Json one = {{"name", event.name},
                {"cat", event.category},
                {"ph", "X"},
                {"pid", 1},
                {"tid", event.on_device ? kDeviceTrack : event.thread},
                {"ts", begin},
                {"dur", static_cast<double>(event.end - event.begin) * 1e-3}};
    if (!is_launch(event)) one["name"] = std::string(event.category) + " " + event.name;
    if (is_launch(event)) {
      one["args"] = {
          {"ops", joined(event.ops)}, {"layer", event.layer}, {"bytes", event.bytes}, {"gflop", event.flop * 1e-9}};
      list.push_back({{"name", "in use by plans"},
                      {"ph", "C"},
                      {"pid", 1},
                      {"ts", begin},
                      {"args", {{"MiB", static_cast<double>(event.live_bytes) / (1 << 20)}}}});
    }
    list.push_back(std::move(one));
  }
  std::ofstream file(path);
  file << Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(list)}}.dump(-1, ' ', false,
                                                                                 Json::error_handler_t::replace)
       << '\n';
  file.close();
  if (!file) throw FileError(fmt::format("{} cannot be written: {}", path, std::strerror(errno)));
}

}  // namespace fusejit
