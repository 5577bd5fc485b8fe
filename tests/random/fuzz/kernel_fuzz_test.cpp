// The kernel parser on damaged kernels of docs/kernel-ir.md §12: it ends with a kernel whose text is stable, or with a
// UserError. What it accepts is verified too: verify must answer, whatever it is given.
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"
#include "tests/support/mutate.h"

namespace fusejit::ir {
namespace {

// The kernels of the page: a text from "kernel @" to the next one or to the end of its code block.
std::vector<std::string> documented_kernels() {
  std::ifstream file(std::string(FUSEJIT_SOURCE_DIR) + "/docs/kernel-ir.md");
  std::vector<std::string> kernels;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) inside = false;
    if (line.starts_with("kernel @")) kernels.emplace_back(), inside = true;
    if (inside) kernels.back() += line + "\n";
  }
  return kernels;
}

// True if the text was accepted.
bool check_kernel(const std::string& text) {
  try {
    const Kernel kernel = parse_kernel(text);
    const std::string printed = print(kernel);
    EXPECT_EQ(print(parse_kernel(printed)), printed);
    try {
      verify(kernel);
    } catch (const InternalError&) {
      return false;  // how verify says no
    }
    return true;
  } catch (const UserError&) {
    return false;
  }
}

TEST(KernelFuzz, DocumentedKernelsAreAccepted) {
  const std::vector<std::string> kernels = documented_kernels();
  EXPECT_GE(kernels.size(), 15u);
  for (const std::string& text : kernels) EXPECT_TRUE(check_kernel(text)) << text.substr(0, 200);
}

TEST(KernelFuzz, DamagedKernels) {
  std::mt19937 random(31);
  int accepted = 0;
  for (const std::string& text : documented_kernels()) {
    const int rounds = static_cast<int>(400'000 / text.size());
    for (int i = 0; i < rounds; ++i) {
      const std::string damaged = mutated(text, random);
      SCOPED_TRACE(damaged);
      accepted += check_kernel(damaged) ? 1 : 0;
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(accepted, 10);  // a digit more or less is often still a kernel
}

TEST(KernelFuzz, EveryPrefix) {
  for (const std::string& text : documented_kernels()) {
    if (text.size() > 1500) continue;
    for (std::size_t length = 0; length < text.size() - 3; ++length) check_kernel(text.substr(0, length));
  }
}

TEST(KernelFuzz, DeepAndLongTexts) {
  const auto repeated = [](const std::string& what, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += what;
    return all;
  };
  const std::string head = "kernel @k(%y: f32[10] write) on any { phase { ";
  std::string loops;
  for (int i = 0; i < 100000; ++i) loops += "for %i" + std::to_string(i) + " in 0..1 { ";
  EXPECT_FALSE(check_kernel(head + loops));
  EXPECT_FALSE(check_kernel(head + repeated("if 0 < 1 { ", 100000) + "store %y[0], 0 " + repeated("}", 100002)));
  EXPECT_FALSE(check_kernel(head + "store %y[" + repeated("(", 1000000)));
  EXPECT_FALSE(check_kernel(head + "for %i in 0..10 { store %y[" + repeated("(", 9999) + "%i" +
                            repeated("/3 + %i)", 9999) + "], 0 } } }"));
  EXPECT_FALSE(check_kernel(head + "for %i in 0..10 { store %y[" + repeated("%i + ", 100000) + "1], 0 } } }"));
  EXPECT_FALSE(check_kernel(head + "for %i in 0..10 { store %y[%i" + repeated("*1000000", 100) + "], 0 } } }"));
}

}  // namespace
}  // namespace fusejit::ir
