// Random kernels that verify: nests of serial, unrolled and lane loops, ifs, reductions, locals and gathers around
// arithmetic on f32, i32 and bool values. For tests that compare two ways to run one kernel.
#pragma once

#include <random>
#include <string>

#include "fusejit/target.h"

namespace fusejit::test {

// Buffers: %a f32[97] and %n i32[31] are read, %y f32[tasks, rows, lanes] is written; %s is an f32 scalar.
std::string random_kernel(std::mt19937& random, Isa isa);

}  // namespace fusejit::test
