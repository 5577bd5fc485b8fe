// The worked kernels: their canonical texts are as committed, they verify, and printing is idempotent.
#include <gtest/gtest.h>

#include "tests/unit/kernel/kernels.h"

namespace fusejit::ir {
namespace {

class Worked : public ::testing::TestWithParam<std::string> {};

// FUSEJIT_BLESS=1 rewrites the canonical texts.
TEST_P(Worked, CanonicalTextIsAsCommitted) {
  const std::string text = print(testing::worked_kernel(GetParam()));
  std::filesystem::path golden = testing::kernel_folder() / "canonical" / GetParam();
  golden.replace_extension(".canon");
  if (std::getenv("FUSEJIT_BLESS")) std::ofstream(golden) << text;
  EXPECT_EQ(text, testing::read_text(golden));
}

TEST_P(Worked, PrintAndParseAreInverse) {
  const Kernel kernel = testing::worked_kernel(GetParam());
  const std::string text = print(kernel);
  const Kernel again = parse_kernel(text);
  EXPECT_EQ(print(again), text);
  EXPECT_TRUE(again == kernel);
}

TEST_P(Worked, Verifies) { EXPECT_NO_THROW(verify(testing::worked_kernel(GetParam()))); }

TEST_P(Worked, SimplifiedVerifiesAndIsStable) {
  const Kernel simple = simplify(testing::worked_kernel(GetParam()));
  EXPECT_NO_THROW(verify(simple));
  EXPECT_EQ(print(simplify(simple)), print(simple));
}

INSTANTIATE_TEST_SUITE_P(Kernels, Worked, ::testing::ValuesIn(testing::kernel_files()),
                         [](const auto& info) { return info.param.substr(0, info.param.find('.')); });

TEST(KernelText, KeyReplacesTheNameOnly) {
  const Kernel kernel = testing::worked_kernel("k_put_a.kir");
  EXPECT_EQ(kernel_key_text(kernel), "kernel @k" + print(kernel).substr(std::string("kernel @put_a").size()));
}

}  // namespace
}  // namespace fusejit::ir
