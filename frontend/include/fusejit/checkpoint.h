// Checkpoint: a whole run in one file, so that it goes on as if it had never stopped, to the bit.
//
//   fj::Checkpoint run;
//   run.add("net", net).add("opt", opt).add("schedule", schedule).add("ema", ema);
//   if (std::filesystem::exists(path)) run.load(path);
//   for (std::int64_t& epoch = run.numbers["epoch"]; epoch < 3;) {
//     opt.step(fj::mse_loss(net(x), y));
//     ema.update_parameters();
//     schedule.step();
//     ++epoch;
//     run.save(path);
//   }
//
// The default random generator (random.h) goes along: dropout, and orders of batches drawn from it, are what they would
// have been.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fusejit/io.h"
#include "fusejit/module.h"

namespace fusejit {

// What keeps its state under names, and is a handle: optimisers, schedules, train steps, modules, and one's own.
template <class T>
concept Stateful = std::copy_constructible<T> && requires(T part, const StateDict& values) {
  { part.state_dict() } -> std::convertible_to<StateDict>;
  part.load_state_dict(values);
};

class Checkpoint {
 public:
  // A part of the run; the checkpoint holds a handle on it. Its values are "<name>.<their name>" in the file. UserError
  // for a name that is taken, is empty, has a dot, or is "generator" or "numbers". Returns *this.
  template <Stateful Part>
  Checkpoint& add(const std::string& name, Part part) {
    return add_part({name, [part] { return part.state_dict(); },
                     [part](const StateDict& values) mutable { part.load_state_dict(values); }});
  }
  Checkpoint& add(const std::string& name, const nn::Module& module);

  // Where the run stands, and whatever else is to be kept: epoch, step, best accuracy times 1000.
  std::map<std::string, std::int64_t> numbers;

  // An .npz, written whole or not at all: one of the same name stays as it is until the new one is there. FileError.
  void save(const std::string& path) const;
  // All of it or nothing. Errors of files as in io.h; one UserError that counts what is missing, unknown, or of another
  // shape or dtype, and names the first five of each. Numbers that the file has are added to `numbers`.
  void load(const std::string& path);

 private:
  struct Part {
    std::string name;
    std::function<StateDict()> state;
    std::function<void(const StateDict&)> load;
  };
  Checkpoint& add_part(Part part);
  StateDict state_dict() const;
  std::vector<Part> parts_;
};

}  // namespace fusejit
