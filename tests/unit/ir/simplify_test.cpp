// Rules of passes/simplify: before and after, and what must stay.
#include <gtest/gtest.h>

#include "ir/passes/passes.h"

namespace fusejit::ir {
namespace {

struct Rule {
  const char* parameters;
  const char* before;
  const char* after;
};

// Bodies without numbering; `return` follows.
const Rule kRules[] = {
    {"%x: f32[2]", "%0 = mul(%x, 1) : f32[2] return %0", "return %x"},
    {"%x: f32[2]", "%0 = add(%x, -0.0) : f32[2] return %0", "return %x"},
    {"%x: f32[2]", "%0 = sub(%x, 0) : f32[2] return %0", "return %x"},
    {"%x: i32[2]", "%0 = add(%x, 0) : i32[2] return %0", "return %x"},
    {"%x: f32[2]", "%0 = div(%x, 8) : f32[2] return %0", "%0 = mul(%x, 0.125) : f32[2] return %0"},
    {"%x: f32[2]", "%0 = neg(%x) : f32[2] %1 = neg(%0) : f32[2] %2 = abs(%0) : f32[2] return %1, %2",
     "%0 = abs(%x) : f32[2] return %x, %0"},
    {"%x: f32[2]", "%0 = maximum(%x, 0) : f32[2] %1 = maximum(%0, 0) : f32[2] return %1",
     "%0 = maximum(%x, 0) : f32[2] return %0"},
    {"%c: bool[2], %x: f32[2]", "%0 = where(%c, %x, %x) : f32[2] return %0", "return %x"},
    {"%x: f32[2]", "%0 = eq(%x, 1) : bool[2] %1 = logical_not(%0) : bool[2] return %1",
     "%0 = ne(%x, 1) : bool[2] return %0"},
    {"%x: f16[2]", "%0 = cast(%x) {dtype=f32} : f32[2] %1 = cast(%0) {dtype=f16} : f16[2] return %1", "return %x"},
    {"%x: i32[2]", "%0 = cast(%x) {dtype=f64} : f64[2] %1 = cast(%0) {dtype=f32} : f32[2] return %1",
     "%0 = cast(%x) {dtype=f32} : f32[2] return %0"},
    {"%x: f32[6]", "%0 = reshape(%x) {shape=[2,3]} : f32[2,3] %1 = reshape(%0) {shape=[3,2]} : f32[3,2] return %1",
     "%0 = reshape(%x) {shape=[3,2]} : f32[3,2] return %0"},
    {"%x: f32[6]", "%0 = reshape(%x) {shape=[2,3]} : f32[2,3] %1 = reshape(%0) {shape=[6]} : f32[6] return %1",
     "return %x"},
    {"%x: f32[2,3]", "%0 = permute(%x) {dims=[1,0]} : f32[3,2] %1 = permute(%0) {dims=[1,0]} : f32[2,3] return %1",
     "return %x"},
    {"%x: f32[2,1]", "%0 = sum(%x) {dim=[1]} : f32[2] return %0", "%0 = reshape(%x) {shape=[2]} : f32[2] return %0"},
    {"%x: f32[2]",
     "%0 = full() {shape=[2], value=3} : f32[2] %1 = mul(%0, 2) : f32[2] %2 = add(%x, %1) : f32[2] return %2",
     "%0 = add(%x, 6) : f32[2] return %0"},
    {"", "%0 = full() {shape=[2], value=0.5} : f32[2] %1 = sqrt(%0) : f32[2] %2 = lt(%1, 1) : bool[2] return %2",
     "%0 = full() {shape=[2], value=1, dtype=bool} : bool[2] return %0"},
    {"", "%0 = full() {shape=[2], value=0.5} : f32[2] %1 = exp(%0) : f32[2] return %1",
     "%0 = full() {shape=[2], value=0.5} : f32[2] %1 = exp(%0) : f32[2] return %1"},
    {"%x: f32[2]", "%0 = slice(%x) {starts=[0], stops=[2], steps=[1]} : f32[2] return %0", "return %x"},
    {"%x: f32[2]", "%0 = concat(%x) {dim=0} : f32[2] return %0", "return %x"},
    {"%x: f32[2,3]", "%0 = flip(%x) {dims=[1]} : f32[2,3] %1 = flip(%0) {dims=[1]} : f32[2,3] return %1", "return %x"},
    {"%x: u8[2]", "%0 = cast(%x) {dtype=f16} : f16[2] %1 = cast(%0) {dtype=u8} : u8[2] return %1", "return %x"},
    {"%x: u8[2]", "%0 = cast(%x) {dtype=i16} : i16[2] %1 = cast(%0) {dtype=i8} : i8[2] return %1",
     "%0 = cast(%x) {dtype=i8} : i8[2] return %0"},
    {"%x: i8[2]", "%0 = neg(%x) : i8[2] %1 = abs(%0) : i8[2] return %1", "%0 = abs(%x) : i8[2] return %0"},
    // What must stay.
    {"%x: u8[2]", "%0 = cast(%x) {dtype=f32} : f32[2] %1 = cast(%0) {dtype=i8} : i8[2] return %1",
     "%0 = cast(%x) {dtype=f32} : f32[2] %1 = cast(%0) {dtype=i8} : i8[2] return %1"},
    {"%x: i32[2]", "%0 = cast(%x) {dtype=f64} : f64[2] %1 = cast(%0) {dtype=i16} : i16[2] return %1",
     "%0 = cast(%x) {dtype=f64} : f64[2] %1 = cast(%0) {dtype=i16} : i16[2] return %1"},
    {"%x: u8[2]", "%0 = cast(%x) {dtype=i8} : i8[2] %1 = cast(%0) {dtype=i16} : i16[2] return %1",
     "%0 = cast(%x) {dtype=i8} : i8[2] %1 = cast(%0) {dtype=i16} : i16[2] return %1"},
    {"%x: i16[2]", "%0 = cast(%x) {dtype=f16} : f16[2] %1 = cast(%0) {dtype=f32} : f32[2] return %1",
     "%0 = cast(%x) {dtype=f16} : f16[2] %1 = cast(%0) {dtype=f32} : f32[2] return %1"},
    {"%x: u8[2]", "%0 = neg(%x) : u8[2] %1 = abs(%0) : u8[2] return %1",
     "%0 = neg(%x) : u8[2] %1 = abs(%0) : u8[2] return %1"},
    {"%x: f32[2,3]", "%0 = flip(%x) {dims=[0]} : f32[2,3] %1 = flip(%0) {dims=[1]} : f32[2,3] return %1",
     "%0 = flip(%x) {dims=[0]} : f32[2,3] %1 = flip(%0) {dims=[1]} : f32[2,3] return %1"},
    {"%x: f32[2]", "%0 = add(%x, 0) : f32[2] return %0", "%0 = add(%x, 0) : f32[2] return %0"},
    {"%x: f32[2]", "%0 = mul(%x, 0) : f32[2] return %0", "%0 = mul(%x, 0) : f32[2] return %0"},
    {"%x: f32[2]", "%0 = div(%x, 3) : f32[2] return %0", "%0 = div(%x, 3) : f32[2] return %0"},
    {"%x: f32[2]", "%0 = cast(%x) {dtype=f16} : f16[2] %1 = cast(%0) {dtype=f32} : f32[2] return %1",
     "%0 = cast(%x) {dtype=f16} : f16[2] %1 = cast(%0) {dtype=f32} : f32[2] return %1"},
    {"%x: f32[2]", "%0 = lt(%x, 1) : bool[2] %1 = logical_not(%0) : bool[2] return %1",
     "%0 = lt(%x, 1) : bool[2] %1 = logical_not(%0) : bool[2] return %1"},
    {"%x: f32[1,2,3,4]", "%0 = mul(%x, 1) : f32[1,2,3,4]:nhwc return %0",
     "%0 = mul(%x, 1) : f32[1,2,3,4]:nhwc return %0"},
    {"%x: f32[1]", "%0 = full() {shape=[2], value=3} : f32[2] %1 = add(%x, %0) : f32[2] return %1",
     "%0 = full() {shape=[2], value=3} : f32[2] %1 = add(%x, %0) : f32[2] return %1"},
};

class Simplify : public ::testing::TestWithParam<Rule> {};

TEST_P(Simplify, GivesTheExpectedGraph) {
  const Rule& rule = GetParam();
  const auto graph = [&](const char* body) {
    return parse_graph("graph @g(" + std::string(rule.parameters) + ") { " + body + " }");
  };
  const Graph after = simplify(graph(rule.before));
  verify(after);
  EXPECT_EQ(print(after), print(graph(rule.after)));
  EXPECT_EQ(print(simplify(after)), print(after));
}

INSTANTIATE_TEST_SUITE_P(Rules, Simplify, ::testing::ValuesIn(kRules));

}  // namespace
}  // namespace fusejit::ir
