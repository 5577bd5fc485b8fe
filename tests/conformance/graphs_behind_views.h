// Graphs of what follows an anchor behind a permutation or a reshape.
#pragma once

#include "tests/conformance/graphs.h"

namespace fusejit::testing {

inline constexpr GraphCase kGraphsBehindViews[] = {
    // Rows of channels as an image, and back; sums over rows that are dims; all extents alike.
    {"turned_product", R"(graph @g(%x: f32[2,5,7,24], %w: f32[40,24], %s: f32[40], %z: f32[2,40,5,7]:nhwc) {
  %0 = linear(%x, %w) : f32[2,5,7,40]
  %1 = mul(%s, %0) : f32[2,5,7,40]
  %2 = permute(%1) {dims=[0,3,1,2]} : f32[2,40,5,7]:nhwc
  %3 = add(%z, %2) : f32[2,40,5,7]:nhwc
  %4 = relu(%3) : f32[2,40,5,7]:nhwc
  %5 = permute(%4) {dims=[0,3,2,1]} : f32[2,7,5,40]
  return %3, %5
})"},
    {"sums_of_rows", R"(graph @g(%x: f32[24,40], %w: f32[40,48], %z: f32[2,3,4,48], %y: f32[6,4,48]) {
  %0 = matmul(%x, %w) : f32[24,48]
  %1 = reshape(%0) {shape=[2,3,4,48]} : f32[2,3,4,48]
  %2 = mul(%1, %z) : f32[2,3,4,48]
  %3 = sum(%2) {dim=[0,1,2]} : f32[48]
  %4 = sum(%1) {dim=[0,1,2], keepdim=true} : f32[1,1,1,48]
  %5 = sum(%2) {dim=[0,2]} : f32[3,48]
  %6 = reshape(%0) {shape=[6,4,48]} : f32[6,4,48]
  %7 = sub(%6, %y) : f32[6,4,48]
  %8 = amax(%7) {dim=[0,1]} : f32[48]
  return %2, %3, %4, %5, %8
})"},
    {"turned_image", R"(graph @g(%x: f32[8,4,8,8]:nhwc, %w: f32[8,4,3,3], %z: f32[8,8,8,8], %m: bool[8,8,8,8]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[8,8,8,8]:nhwc
  %1 = permute(%0) {dims=[2,0,3,1]} : f32[8,8,8,8]
  %2 = add(%1, %z) : f32[8,8,8,8]
  %3 = where(%m, %2, 0) : f32[8,8,8,8]
  %4 = sum(%3) {dim=[0,1,2]} : f32[8]
  %5 = permute(%2) {dims=[1,3,0,2]} : f32[8,8,8,8]:nhwc
  %6 = relu(%5) : f32[8,8,8,8]:nhwc
  return %3, %4, %6
})"},
};

}  // namespace fusejit::testing
