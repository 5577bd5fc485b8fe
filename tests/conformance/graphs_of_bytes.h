// Graphs of i8, u8 and i16, and all cases together.
#pragma once

#include <vector>

#include "tests/conformance/graphs.h"
#include "tests/conformance/graphs_behind_views.h"

namespace fusejit::testing {

inline constexpr GraphCase kGraphsOfBytes[] = {
    // Narrow integers: each op's result wraps before the next one reads it, in whole vectors and in what is left over.
    {"bytes", R"(graph @g(%a: u8[20011], %b: i8[20011], %s: i16[20011], %x: f32[20011]) {
  %0 = add(%a, 200) : u8[20011]
  %1 = floor_divide(%0, 3) : u8[20011]
  %2 = mul(%b, %b) : i8[20011]
  %3 = maximum(%2, %b) : i8[20011]
  %4 = add(%a, %b) : i16[20011]
  %5 = mul(%s, %4) : i16[20011]
  %6 = lt(%5, %s) : bool[20011]
  %7 = where(%6, %1, %a) : u8[20011]
  %8 = mul(%x, 100) : f32[20011]
  %9 = cast(%8) {dtype=u8} : u8[20011]
  %10 = bitwise_xor(%9, %7) : u8[20011]
  %11 = cast(%8) {dtype=i8} : i8[20011]
  %12 = neg(%11) : i8[20011]
  %13 = cast(%10) {dtype=f32} : f32[20011]
  %14 = add(%13, %x) : f32[20011]
  %15 = sum(%10) {dim=[0]} : i64[]
  %16 = pow(%b, %7) : i16[20011]
  %17 = remainder(%12, %b) : i8[20011]
  %18 = cast(%16) {dtype=bf16} : bf16[20011]
  return %10, %12, %14, %15, %3, %5, %17, %18
})"},
    {"bytes_reduced", R"(graph @g(%x: u8[3,37,41], %y: i8[3,37,41], %z: i16[2,5001]) {
  %0 = sum(%x) {dim=[2]} : i64[3,37]
  %1 = amax(%x) {dim=[1]} : u8[3,41]
  %2 = amin(%y) {dim=[0,1]} : i8[41]
  %3 = argmax(%x) {dim=2} : i64[3,37]
  %4 = add(%y, %y) : i8[3,37,41]
  %5 = amax(%4) {dim=[1,2]} : i8[3]
  %6 = prod(%z) {dim=[1]} : i64[2]
  %7 = any(%x) {dim=[0]} : bool[37,41]
  %8 = argmin(%z) {dim=1} : i64[2]
  %9 = amax(%z) {dim=[0,1]} : i16[]
  return %0, %1, %2, %3, %5, %6, %7, %8, %9
})"},
    {"bytes_viewed", R"(graph @g(%x: u8[2,9,7,3], %i: u8[2,9,5,3], %w: i16[6,33,5]) {
  %0 = permute(%x) {dims=[0,3,1,2]} : u8[2,3,9,7]
  %1 = pad(%0) {low=[0,0,1,2], high=[0,0,1,0], value=255} : u8[2,3,11,9]
  %2 = flip(%1) {dims=[3]} : u8[2,3,11,9]
  %3 = slice(%2) {starts=[0,0,0,1], stops=[2,3,11,9], steps=[1,1,2,3]} : u8[2,3,6,3]
  %4 = remainder(%i, 7) : u8[2,9,5,3]
  %5 = gather(%x, %4) {dim=2} : u8[2,9,5,3]
  %6 = gather_grad(%5, %4) {dim=2, shape=[2,9,7,3]} : u8[2,9,7,3]
  %7 = one_hot(%4) {num_classes=7, dtype=i8} : i8[2,9,5,3,7]
  %8 = concat(%x, %x) {dim=3} : u8[2,9,7,6]
  %9 = permute(%w) {dims=[2,0,1]} : i16[5,6,33]
  %10 = reshape(%x) {shape=[378]} : u8[378]
  return %1, %3, %5, %6, %7, %8, %9, %10
})"},
    // A batch of bytes that a network normalises: NCHW, and NHWC as images are.
    {"bytes_in_front_of_a_convolution",
     R"(graph @g(%x: u8[2,3,12,12], %m: f32[3,1,1], %d: f32[3,1,1], %w: f32[8,3,3,3], %g: f32[2,8,12,12]) {
  %0 = cast(%x) {dtype=f32} : f32[2,3,12,12]
  %1 = mul(%0, 0.00392156862745098) : f32[2,3,12,12]
  %2 = sub(%1, %m) : f32[2,3,12,12]
  %3 = mul(%2, %d) : f32[2,3,12,12]
  %4 = conv2d(%3, %w) {padding=[1,1,1,1]} : f32[2,8,12,12]
  %5 = relu(%4) : f32[2,8,12,12]
  %6 = conv2d_weight_grad(%3, %g) {kernel_size=[3,3], padding=[1,1,1,1]} : f32[8,3,3,3]
  return %5, %6
})"},
    {"bytes_in_rows_of_pixels", R"(graph @g(%x: u8[2,12,12,3], %w: f32[8,3,3,3], %g: f32[2,8,6,6]) {
  %0 = permute(%x) {dims=[0,3,1,2]} : u8[2,3,12,12]
  %1 = cast(%0) {dtype=f32} : f32[2,3,12,12]
  %2 = mul(%1, 0.00392156862745098) : f32[2,3,12,12]
  %3 = conv2d(%2, %w) {stride=[2,2], padding=[1,1,1,1]} : f32[2,8,6,6]
  %4 = conv2d_weight_grad(%2, %g) {kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]} : f32[8,3,3,3]
  return %3, %4
})"},
};

inline std::vector<GraphCase> every_graph_case() {
  std::vector<GraphCase> all(std::begin(kGraphCases), std::end(kGraphCases));
  all.insert(all.end(), std::begin(kGraphsOfBytes), std::end(kGraphsOfBytes));
  all.insert(all.end(), std::begin(kGraphsBehindViews), std::end(kGraphsBehindViews));
  return all;
}

}  // namespace fusejit::testing
