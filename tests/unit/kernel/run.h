// Runs a kernel in the interpreter in every order and keeps what it wrote.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "ir/kernel/interp/interp.h"
#include "tests/unit/kernel/kernels.h"

namespace fusejit::testing {

// The bytes of one buffer.
class Bytes {
 public:
  explicit Bytes(std::int64_t size) : words_(static_cast<std::size_t>(size + 7) / 8) {}
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(words_.data());
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(words_.data());
  }
  friend bool operator==(const Bytes&, const Bytes&) = default;

 private:
  std::vector<std::uint64_t> words_;
};

// The buffers of a kernel in order.
inline std::vector<Bytes> buffers_of(const ir::Kernel& kernel) {
  std::vector<Bytes> buffers;
  for (const ir::KernelParam& p : kernel.params) {
    if (p.memory < 0) continue;
    const ir::Memory& m = kernel.memories[static_cast<std::size_t>(p.memory)];
    buffers.emplace_back(bytes(m.dtype, m.elements()));
  }
  return buffers;
}

inline void run(const ir::Kernel& kernel, std::vector<Bytes>& buffers, const std::vector<ir::Scalar>& scalars,
                const ir::InterpretOptions& options = {}) {
  std::vector<void*> pointers;
  for (Bytes& b : buffers) pointers.push_back(b.as<void>());
  ir::interpret(kernel, pointers, scalars, options);
}

// Equal bits in ascending, descending and shuffled order of tasks, blocks and lanes.
inline void run_in_all_orders(const ir::Kernel& kernel, std::vector<Bytes>& buffers,
                              const std::vector<ir::Scalar>& scalars = {}) {
  ir::verify(kernel);
  const std::vector<Bytes> before = buffers;
  run(kernel, buffers, scalars);
  for (const ir::TaskOrder order : {ir::TaskOrder::descending, ir::TaskOrder::shuffled}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      std::vector<Bytes> again = before;
      run(kernel, again, scalars, {order, seed, true});
      EXPECT_TRUE(again == buffers) << "order " << static_cast<int>(order) << " seed " << seed;
    }
  }
  std::vector<Bytes> simple = before;
  run(ir::simplify(kernel), simple, scalars);
  EXPECT_TRUE(simple == buffers) << "simplified";
}

}  // namespace fusejit::testing
