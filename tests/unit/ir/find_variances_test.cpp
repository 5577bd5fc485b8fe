// passes/find_variances: before and after, and what must stay.
#include <gtest/gtest.h>

#include "ir/passes/passes.h"

namespace fusejit::ir {
namespace {

Graph parsed(const std::string& body) { return parse_graph("graph @g(%x: f32[4,6], %z: f32[4,6]) {\n" + body + "\n}"); }

constexpr const char* kVariance =
    "%0 = mean(%x) {dim=[1], keepdim=true} : f32[4,1] %1 = sub(%x, %0) : f32[4,6] "
    "%2 = var(%x) {dim=[1], correction=0, keepdim=true} : f32[4,1] %3 = mul(%1, %2) : f32[4,6] return %3";

TEST(FindVariances, TheMeanOfSquaresAroundTheMeanIsTheVariance) {
  for (const char* square : {"square(%1)", "mul(%1, %1)", "pow(%1, 2)"}) {
    const std::string body =
        "%0 = mean(%x) {dim=[1], keepdim=true} : f32[4,1] %1 = sub(%x, %0) : f32[4,6] %q = " + std::string(square) +
        " : f32[4,6] %2 = mean(%q) {dim=[1], keepdim=true} : f32[4,1] "
        "%3 = mul(%1, %2) : f32[4,6] return %3";
    EXPECT_EQ(print(simplify(find_variances(parsed(body)))), print(simplify(parsed(kVariance)))) << square;
  }
  // The mean as a vector of its own, shaped to meet x.
  const Graph shaped = find_variances(
      parsed("%0 = mean(%x) {dim=[0]} : f32[6] %1 = reshape(%0) {shape=[1,6]} : f32[1,6] %2 = sub(%x, %1) : f32[4,6] "
             "%3 = square(%2) : f32[4,6] %4 = mean(%3) {dim=[0]} : f32[6] return %4"));
  EXPECT_NE(print(shaped).find("var(%x) {dim=[0], correction=0, keepdim=false}"), std::string::npos) << print(shaped);
}

TEST(FindVariances, OtherMeansStay) {
  for (const char* body :
       {// of another tensor, over other dims, of columns as a column, around something else, of no square
        "%0 = mean(%z) {dim=[1], keepdim=true} : f32[4,1] %1 = sub(%x, %0) : f32[4,6] %2 = square(%1) : f32[4,6] "
        "%3 = mean(%2) {dim=[1], keepdim=true} : f32[4,1] return %3",
        "%0 = mean(%x) {dim=[0], keepdim=true} : f32[1,6] %1 = sub(%x, %0) : f32[4,6] %2 = square(%1) : f32[4,6] "
        "%3 = mean(%2) {dim=[1], keepdim=true} : f32[4,1] return %3",
        "%s = slice(%x) {starts=[0,0], stops=[4,4], steps=[1,1]} : f32[4,4] %0 = mean(%s) {dim=[0]} : f32[4] "
        "%1 = reshape(%0) {shape=[4,1]} : f32[4,1] %2 = sub(%s, %1) : f32[4,4] %3 = square(%2) : f32[4,4] "
        "%4 = mean(%3) {dim=[1]} : f32[4] return %4",
        "%0 = amax(%x) {dim=[1], keepdim=true} : f32[4,1] %1 = sub(%x, %0) : f32[4,6] %2 = square(%1) : f32[4,6] "
        "%3 = mean(%2) {dim=[1], keepdim=true} : f32[4,1] return %3",
        "%0 = mean(%x) {dim=[1], keepdim=true} : f32[4,1] %1 = sub(%x, %0) : f32[4,6] %2 = mul(%1, %x) : f32[4,6] "
        "%3 = mean(%2) {dim=[1], keepdim=true} : f32[4,1] return %3"}) {
    const Graph before = parsed(body);
    EXPECT_TRUE(find_variances(before).is(before)) << body;
  }
}

}  // namespace
}  // namespace fusejit::ir
