// The default random generator: counter-based (Philox4x32-10), so the same seed gives the same words on every back end
// and for every number of threads. Drawing is recorded; the seed is an argument of the trace. rand() is in tensor.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fusejit/tensor.h"

namespace fusejit {

//   fj::manual_seed(1);
//   std::vector<float> first = fj::rand({3}).to_vector<float>();
//   fj::manual_seed(1);
//   std::vector<float> again = fj::rand({3}).to_vector<float>();  // the same numbers

// Restarts the default generator. A program that never calls this starts from 0.
void manual_seed(std::uint64_t seed);

// Where the default generator stands: the numbers drawn after set_rng_state() are those that were drawn after
// get_rng_state().
struct RngState {
  std::uint64_t seed = 0;
  std::uint64_t drawn = 0;  // seeds handed out since manual_seed()
};
// Where it stands now, and going there.
RngState get_rng_state();
void set_rng_state(const RngState& state);

// A random order of 0 .. count - 1, from the seed alone (Fisher-Yates over Philox words). UserError for a negative
// count.
std::vector<std::int64_t> random_permutation(std::int64_t count, std::uint64_t seed);
// A seed that the default generator hands out once.
std::uint64_t next_seed();

// Normal with mean 0 and deviation 1, from the default generator: Box and Muller 1958, 48 bits of which decide about
// the tail, which ends at 8.2. Float dtypes. The words are the same everywhere; last bits are those that a target's log
// and cos give.
//
//   fj::manual_seed(1);
//   fj::Tensor noise = fj::randn({2, 3});
Tensor randn(const Shape& shape, DType dtype = f32);
Tensor randn_like(const Tensor& x, std::optional<DType> dtype = {});
// mean + deviation*randn(). Tensors: float, shapes broadcast. UserError for a negative or NaN number as deviation.
//
//   fj::Tensor around = fj::normal(10, 2, {4});
Tensor normal(Number mean, Number deviation, const Shape& shape, DType dtype = f32);
Tensor normal(const Tensor& mean, const Tensor& deviation);
// Whole numbers from low to high, that one left out: the rest of a word of 48 bits divided by high - low, of one of 64
// bits where there are more than 2^24 of them. Up to 2^40 of them are as probable as each other but for one part in
// 2^24. Any dtype; ints and bool must hold the numbers, floats round them. UserError unless low < high.
//
//   fj::Tensor dice = fj::randint(1, 7, {10});
Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, DType dtype = i64);
Tensor randint(std::int64_t high, const Shape& shape, DType dtype = i64);  // from 0
// [count]: random_permutation() with the next seed, made on the host.
//
//   fj::Tensor order = fj::randperm(5);
Tensor randperm(std::int64_t count, DType dtype = i64);
// 1 with the probability that stands in p, else 0, of p's dtype; exact to 2^-24. p: float, each from 0 to 1 (what is
// beyond counts as the nearer of them, NaN as 0). With a number: that probability, for the shape and dtype of x.
//
//   fj::Tensor coins = fj::bernoulli(fj::full({10}, 0.5));
Tensor bernoulli(const Tensor& p);
Tensor bernoulli(const Tensor& x, double p);

}  // namespace fusejit
