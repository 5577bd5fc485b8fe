#include "fusejit/checkpoint.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "frontend/nn/check_state.h"
#include "fusejit/random.h"
#include "ir/base/check.h"
#include "ir/base/placed_error.h"

namespace fusejit {
namespace {

constexpr std::string_view kGenerator = "generator", kNumbers = "numbers";

Tensor number(std::int64_t value) { return from_host(std::vector<std::int64_t>{value}, {}); }

// Entries "<name>.<entry>", without the name.
StateDict entries_of(const StateDict& values, const std::string& name) {
  StateDict found;
  const std::string prefix = name + ".";
  for (auto at = values.lower_bound(prefix); at != values.end() && at->first.starts_with(prefix); ++at)
    found.emplace(at->first.substr(prefix.size()), at->second);
  return found;
}

void add_entries(StateDict& values, std::string_view name, const StateDict& entries) {
  for (const auto& [entry, value] : entries) values.emplace(fmt::format("{}.{}", name, entry), value);
}

}  // namespace

Checkpoint& Checkpoint::add(const std::string& name, const nn::Module& module) {
  const std::shared_ptr<nn::Module> shared = module.share();
  return add_part({name, [shared] { return shared->state_dict(); },
                   [shared](const StateDict& values) { shared->load_state_dict(values); }});
}

Checkpoint& Checkpoint::add_part(Part part) {
  FJ_CHECK(!part.name.empty() && part.name.find('.') == std::string::npos,
           "a part of a checkpoint must have a name without dots ('{}')", part.name);
  const bool is_taken = part.name == kGenerator || part.name == kNumbers ||
                        std::any_of(parts_.begin(), parts_.end(), [&](const Part& p) { return p.name == part.name; });
  FJ_CHECK(!is_taken, "the checkpoint has a part called '{}' already", part.name);
  parts_.push_back(std::move(part));
  return *this;
}

StateDict Checkpoint::state_dict() const {
  StateDict values;
  for (const Part& part : parts_) add_entries(values, part.name, part.state());
  for (const auto& [name, value] : numbers) values.emplace(fmt::format("{}.{}", kNumbers, name), number(value));
  const RngState generator = get_rng_state();
  add_entries(values, kGenerator,
              {{"seed", number(static_cast<std::int64_t>(generator.seed))},
               {"drawn", number(static_cast<std::int64_t>(generator.drawn))}});
  return values;
}

void Checkpoint::save(const std::string& path) const { fusejit::save(state_dict(), path); }

void Checkpoint::load(const std::string& path) {
  const StateDict given = fusejit::load(path), own = state_dict();
  StateDict expected = own;
  for (const auto& [name, value] : entries_of(given, std::string(kNumbers)))  // the file's are as good as one's own
    expected.emplace(fmt::format("{}.{}", kNumbers, name), number(0));
  nn::check_state(expected, given, path, "run");
  std::size_t begun = 0;
  try {
    for (; begun < parts_.size(); ++begun) parts_[begun].load(entries_of(given, parts_[begun].name));
  } catch (...) {
    for (std::size_t i = 0; i <= begun; ++i) parts_[i].load(entries_of(own, parts_[i].name));
    try {
      throw;
    } catch (const Error& error) {
      ir::throw_with_sentence(error, fmt::format("{}: '{}': {}", path, parts_[begun].name, error.what()));
    }
  }
  const StateDict generator = entries_of(given, std::string(kGenerator));
  set_rng_state({static_cast<std::uint64_t>(generator.at("seed").item<std::int64_t>()),
                 static_cast<std::uint64_t>(generator.at("drawn").item<std::int64_t>())});
  for (const auto& [name, value] : entries_of(given, std::string(kNumbers))) numbers[name] = value.item<std::int64_t>();
}

}  // namespace fusejit
