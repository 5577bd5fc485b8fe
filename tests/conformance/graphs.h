// Graphs that reach every path of the scheduler: the cases of engines_test.cpp, and of the check on a GPU.
#pragma once

namespace fusejit::testing {

struct GraphCase {
  const char* name;
  const char* text;
};

inline constexpr GraphCase kGraphCases[] = {
    // Slices wholly inside padding: kernels that read nothing, and values that are in the graph and read by nobody.
    {"reads_nothing", R"(graph @g(%x: f32[1], %d: f32[]) {
  %0 = pad(%x) {low=[3], high=[0], value=2} : f32[4]
  %1 = slice(%0) {starts=[0], stops=[1], steps=[1]} : f32[1]
  %2 = eq(%1, %x) : bool[1]
  %3 = logical_or(%2, %2) : bool[1]
  %4 = cast(%3) {dtype=f32} : f32[1]
  %5 = reshape(%d) {shape=[1]} : f32[1]
  %6 = div(%5, %4) : f32[1]
  %7 = where(%3, %6, 0) : f32[1]
  %8 = unslice(%7) {shape=[4], starts=[0], steps=[1]} : f32[4]
  %9 = slice(%8) {starts=[3], stops=[4], steps=[1]} : f32[1]
  return %1, %9
})"},
    // Chains of additions that are cut into blocks.
    {"long_row", R"(graph @g(%x: f32[70003], %y: f32[2,70001]) {
  %0 = sum(%x) {dim=[0]} : f32[]
  %1 = square(%y) : f32[2,70001]
  %2 = mean(%1) {dim=[1]} : f32[2]
  %3 = amax(%y) {dim=[1]} : f32[2]
  return %0, %2, %3
})"},
    {"long_product", R"(graph @g(%a: f32[3,33001], %b: f32[33001,5]) {
  %0 = matmul(%a, %b) : f32[3,5]
  %1 = maximum(%0, 0) : f32[3,5]
  return %1
})"},
    // The low bits of integers beyond 2^53.
    {"exact_integers", R"(graph @g(%x: i64[3]) {
  %0 = constant() {shape=[3], dtype=i64, data=[9007199254740993,9223372036854775807,-9223372036854775807]} : i64[3]
  %1 = full() {shape=[3], value=9007199254740995, dtype=i64} : i64[3]
  %2 = add(%0, %x) : i64[3]
  %3 = sub(%1, %x) : i64[3]
  %4 = bitwise_and(%2, 4095) : i64[3]
  %5 = bitwise_and(%3, 4095) : i64[3]
  %6 = pad(%x) {low=[1], high=[1], value=9007199254740993} : i64[5]
  %7 = bitwise_and(%6, 4095) : i64[5]
  return %4, %5, %7
})"},
    {"reads_nothing_of_a_convolution", R"(graph @g(%x: f32[2,3,8,8], %w: f32[4,3,3,3]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[2,4,8,8]
  %1 = sum(%0) {dim=[0,2,3]} : f32[4]
  %2 = reshape(%1) {shape=[1,4,1,1]} : f32[1,4,1,1]
  %3 = add(%0, %2) : f32[2,4,8,8]
  %4 = pad(%3) {low=[0,0,9,0], high=[0,0,0,0], value=-1} : f32[2,4,17,8]
  %5 = slice(%4) {starts=[0,0,0,0], stops=[2,4,9,8], steps=[1,1,1,1]} : f32[2,4,9,8]
  %6 = sum(%5) {dim=[0,2,3]} : f32[4]
  return %6, %5
})"},
    {"chain", R"(graph @g(%x: f32[5,37], %b: f32[37]) {
  %0 = mul(%x, 2.5) : f32[5,37]
  %1 = add(%0, %b) : f32[5,37]
  %2 = maximum(%1, 0) : f32[5,37]
  return %2, %1
})"},
    {"long_chain", R"(graph @g(%x: f32[20011]) {
  %0 = square(%x) : f32[20011]
  %1 = sub(%0, %x) : f32[20011]
  return %1
})"},
    {"transpose", R"(graph @g(%x: f32[6,33,5]) {
  %0 = permute(%x) {dims=[2,0,1]} : f32[5,6,33]
  %1 = add(%0, 1) : f32[5,6,33]
  return %1
})"},
    {"views", R"(graph @g(%x: f32[4,6], %y: f32[4,2]) {
  %0 = concat(%x, %y) {dim=1} : f32[4,8]
  %1 = flip(%0) {dims=[0]} : f32[4,8]
  %2 = slice(%1) {starts=[0,1], stops=[4,8], steps=[1,2]} : f32[4,4]
  %3 = pad(%2) {low=[1,0], high=[0,2], value=3} : f32[5,6]
  %4 = reshape(%3) {shape=[3,10]} : f32[3,10]
  return %4
})"},
    {"reduce_rows", R"(graph @g(%x: f32[7,50]) {
  %0 = sum(%x) {dim=[1]} : f32[7]
  %1 = amax(%x) {dim=[1], keepdim=true} : f32[7,1]
  %2 = argmax(%x) {dim=1} : i64[7]
  return %0, %1, %2
})"},
    {"reduce_columns", R"(graph @g(%x: f32[300,50]) {
  %0 = square(%x) : f32[300,50]
  %1 = sum(%0) {dim=[0]} : f32[50]
  %2 = mean(%x) {dim=[0]} : f32[50]
  %3 = var(%x) {dim=[0], correction=1} : f32[50]
  return %1, %2, %3, %0
})"},
    {"reduce_all", R"(graph @g(%x: f32[123,77]) {
  %0 = sum(%x) {dim=[0,1]} : f32[]
  %1 = var(%x) {dim=[0,1], correction=0} : f32[]
  return %0, %1
})"},
    {"softmax_loss", R"(graph @g(%x: f32[9,10], %t: i64[9]) {
  %0 = log_softmax(%x) {dim=1} : f32[9,10]
  %1 = nll_loss(%0, %t) : f32[]
  return %1, %0
})"},
    {"batch_norm", R"(graph @g(%x: f32[3,5,6,7], %w: f32[5], %b: f32[5]) {
  %0 = batch_norm_train(%x, %w, %b) : f32[3,5,6,7]
  %1 = relu(%0) : f32[3,5,6,7]
  return %1
})"},
    {"conv", R"(graph @g(%x: f32[2,3,9,8], %w: f32[5,3,3,3], %b: f32[5]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[2,5,9,8]
  %1 = bias_add(%0, %b) : f32[2,5,9,8]
  %2 = relu(%1) : f32[2,5,9,8]
  return %2
})"},
    {"conv_wide", R"(graph @g(%x: f32[2,9,7,31]:nhwc, %w: f32[40,9,3,2]) {
  %0 = conv2d(%x, %w) {stride=[2,1], padding=[0,1,2,1], dilation=[1,2]} : f32[2,40,4,31]:nhwc
  return %0
})"},
    // What follows anchors through reshapes runs in their tiles, but where their lanes would lie at quotients (%10).
    {"epilogues_behind_reshapes", R"(graph @g(%x: f32[3,5,3,13], %w: f32[33,5,3,3], %b: f32[33,1],
    %m: f32[3,429], %p: f32[12,7], %q: f32[7,35], %r: f32[2,1,6,35], %k: f32[3,5], %v: f32[5,24],
    %i: f32[3,2,3,4]:nhwc) {
  %0 = conv2d(%x, %w) {padding=[0,1,0,1]} : f32[3,33,1,13]
  %1 = squeeze(%0) {dim=[2]} : f32[3,33,13]
  %2 = add(%1, %b) : f32[3,33,13]
  %3 = relu(%2) : f32[3,33,13]
  %4 = reshape(%3) {shape=[3,429]} : f32[3,429]
  %5 = mul(%4, %m) : f32[3,429]
  %6 = matmul(%p, %q) : f32[12,35]
  %7 = reshape(%6) {shape=[2,1,6,35]} : f32[2,1,6,35]
  %8 = sub(%7, %r) : f32[2,1,6,35]
  %9 = matmul(%k, %v) : f32[3,24]
  %10 = reshape(%9) {shape=[3,2,3,4]} : f32[3,2,3,4]:nhwc
  %11 = mul(%10, %i) : f32[3,2,3,4]:nhwc
  return %3, %5, %8, %11
})"},
    // Tiles in NHWC whose epilogues read and store NCHW.
    {"nchw_at_both_ends",
     R"(graph @g(%x: f32[2,9,7,31], %w: f32[40,9,3,2], %b: f32[40], %z: f32[2,40,4,31], %u: f32[40,1,3,3]) {
  %0 = conv2d(%x, %w) {stride=[2,1], padding=[0,1,2,1], dilation=[1,2]} : f32[2,40,4,31]
  %1 = bias_add(%0, %b) : f32[2,40,4,31]
  %2 = add(%1, %z) : f32[2,40,4,31]
  %3 = relu(%2) : f32[2,40,4,31]
  %4 = conv2d(%3, %u) {padding=[1,1,1,1], groups=40} : f32[2,40,4,31]
  %5 = sigmoid(%4) : f32[2,40,4,31]
  %6 = conv2d_input_grad(%5, %w) {input_size=[7,31], stride=[2,1], padding=[0,1,2,1], dilation=[1,2]} : f32[2,9,7,31]
  %7 = mul(%6, %x) : f32[2,9,7,31]
  return %3, %5, %7
})"},
    // No tap of the window meets the image: a kernel of conditions that never hold.
    {"weight_grad_beside_the_image", R"(graph @g(%dy: f32[1,1,1,1], %x: f32[1,8,1,1]) {
  %0 = conv2d_weight_grad(%x, %dy) {kernel_size=[2,2], stride=[3,3], padding=[1,1,1,1], dilation=[2,2], groups=1} : f32[1,8,2,2]
  return %0
})"},
    // One value summed over its rows and over its columns; square, so that either result would fit the other's place.
    {"sums_over_rows_and_columns", R"(graph @g(%x: f32[40,40]) {
  %0 = maximum(%x, 0) : f32[40,40]
  %1 = sum(%0) {dim=[0]} : f32[40]
  %2 = sum(%0) {dim=[1]} : f32[40]
  return %0, %1, %2
})"},
    // Two convolutions, their sum in place of the first, its statistics beside it: a block with pre-activation.
    {"statistics_of_a_sum_in_place",
     R"(graph @g(%x: f32[2,8,10,10], %w: f32[20,8,1,1], %v: f32[20,8,3,3], %gamma: f32[20], %beta: f32[20], %u: f32[6,20,1,1]) {
  %0 = conv2d(%x, %w) : f32[2,20,10,10]
  %1 = conv2d(%x, %v) {padding=[1,1,1,1]} : f32[2,20,10,10]
  %2 = add(%0, %1) : f32[2,20,10,10]
  %3 = batch_norm_train(%2, %gamma, %beta) {eps=1e-05, correction=0} : f32[2,20,10,10]
  %4 = conv2d(%3, %u) : f32[2,6,10,10]
  %5 = conv2d(%2, %u) : f32[2,6,10,10]
  %6 = add(%4, %5) : f32[2,6,10,10]
  return %6
})"},
    {"conv_bn_stats", R"(graph @g(%x: f32[3,8,10,10], %w: f32[20,8,3,3]) {
  %0 = conv2d(%x, %w) : f32[3,20,8,8]
  %1 = batch_norm_train(%0, 1, 0) : f32[3,20,8,8]
  %2 = relu(%1) : f32[3,20,8,8]
  return %2
})"},
    {"conv_grads", R"(graph @g(%x: f32[2,10,9,8], %w: f32[18,10,3,3], %g: f32[2,18,5,4]) {
  %0 = conv2d_input_grad(%g, %w) {input_size=[9,8], stride=[2,2], padding=[1,1,1,1]} : f32[2,10,9,8]
  %1 = conv2d_weight_grad(%x, %g) {kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]} : f32[18,10,3,3]
  return %0, %1
})"},
    {"conv_grads_one_channel", R"(graph @g(%x: f32[3,1,9,8], %w: f32[32,1,3,3], %g: f32[3,32,7,6]) {
  %0 = conv2d_input_grad(%g, %w) {input_size=[9,8]} : f32[3,1,9,8]
  %1 = conv2d_weight_grad(%x, %g) {kernel_size=[3,3]} : f32[32,1,3,3]
  return %0, %1
})"},
    {"depthwise", R"(graph @g(%x: f32[2,40,9,31]:nhwc, %w: f32[40,1,3,3], %b: f32[40]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1], groups=40} : f32[2,40,9,31]:nhwc
  %1 = bias_add(%0, %b) : f32[2,40,9,31]:nhwc
  %2 = relu6(%1) : f32[2,40,9,31]:nhwc
  %3 = add(%2, %x) : f32[2,40,9,31]:nhwc
  return %3
})"},
    {"depthwise_stride2", R"(graph @g(%x: f32[2,32,9,8]:nhwc, %w: f32[32,1,5,5]) {
  %0 = conv2d(%x, %w) {stride=[2,2], padding=[2,2,2,2], groups=32} : f32[2,32,5,4]:nhwc
  %1 = batch_norm_train(%0, 1, 0) : f32[2,32,5,4]:nhwc
  %2 = relu(%1) : f32[2,32,5,4]:nhwc
  return %2
})"},
    {"depthwise_wide_outputs", R"(graph @g(%x: f32[2,6,7,6], %w: f32[12,1,3,2], %v: f32[30,1,2,2]) {
  %0 = conv2d(%x, %w) {stride=[1,2], padding=[0,1,1,0], dilation=[2,1], groups=6} : f32[2,12,4,3]
  %1 = conv2d(%x, %v) {groups=6} : f32[2,30,6,5]
  return %0, %1
})"},
    {"conv_in_groups", R"(graph @g(%x: f32[2,12,4,7]:nhwc, %w: f32[15,4,3,3], %v: f32[24,6,1,1]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1], groups=3} : f32[2,15,4,7]:nhwc
  %1 = batch_norm_train(%0, 1, 0) : f32[2,15,4,7]:nhwc
  %2 = conv2d(%x, %v) {stride=[2,2], groups=2} : f32[2,24,2,4]:nhwc
  return %1, %2
})"},
    {"conv_in_uneven_groups", R"(graph @g(%x: f32[1,4,3,5]:nhwc, %u: f32[36,2,2,1], %v: f32[12,1,1,2]) {
  %0 = conv2d(%x, %u) {groups=2} : f32[1,36,2,5]:nhwc
  %1 = sum(%0) {dim=[0,2,3]} : f32[36]
  %2 = conv2d(%x, %v) {groups=4} : f32[1,12,3,4]:nhwc
  return %1, %2
})"},
    {"depthwise_input_grads",
     R"(graph @g(%a: f32[2,40,5,4]:nhwc, %w: f32[40,1,3,3], %b: f32[1,12,4,3], %v: f32[12,1,3,3]) {
  %0 = conv2d_input_grad(%a, %w) {input_size=[9,8], stride=[2,2], padding=[1,1,1,1], groups=40} : f32[2,40,9,8]:nhwc
  %1 = conv2d_input_grad(%b, %v) {input_size=[6,5], groups=6} : f32[1,6,6,5]
  return %0, %1
})"},
    {"input_grad_in_groups", R"(graph @g(%c: f32[2,12,2,3]:nhwc, %u: f32[12,4,3,3]) {
  %0 = conv2d_input_grad(%c, %u) {input_size=[3,5], stride=[2,2], padding=[1,1,1,1], groups=3} : f32[2,12,3,5]:nhwc
  return %0
})"},
    {"depthwise_weight_grads",
     R"(graph @g(%x: f32[3,40,9,8]:nhwc, %a: f32[3,40,5,4]:nhwc, %b: f32[3,40,9,8]:nhwc, %y: f32[1,6,5,6], %c: f32[1,12,3,6], %w: f32[40,1,3,3]) {
  %0 = conv2d_weight_grad(%x, %a) {kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1], groups=40} : f32[40,1,3,3]
  %1 = mul(%0, 0.5) : f32[40,1,3,3]
  %2 = sub(%w, %1) : f32[40,1,3,3]
  %3 = conv2d_weight_grad(%x, %b) {kernel_size=[5,7], padding=[2,3,2,3], groups=40} : f32[40,1,5,7]
  %4 = conv2d_weight_grad(%y, %c) {kernel_size=[3,1], groups=6} : f32[12,1,3,1]
  return %2, %3, %4
})"},
    {"weight_grads_in_groups",
     R"(graph @g(%x: f32[2,12,4,5]:nhwc, %a: f32[2,24,4,5]:nhwc, %b: f32[2,36,2,3]:nhwc, %c: f32[2,16,3,4]) {
  %0 = conv2d_weight_grad(%x, %a) {kernel_size=[3,3], padding=[1,1,1,1], groups=3} : f32[24,4,3,3]
  %1 = conv2d_weight_grad(%x, %b) {kernel_size=[1,1], stride=[2,2], groups=2} : f32[36,6,1,1]
  %2 = conv2d_weight_grad(%x, %c) {kernel_size=[2,2], groups=4} : f32[16,3,2,2]
  return %0, %1, %2
})"},
    {"depthwise_half",
     R"(graph @g(%x: bf16[2,20,5,6]:nhwc, %w: bf16[20,1,3,3], %y: f16[1,16,4,5]:nhwc, %v: f16[16,1,3,3]) {
  %0 = conv2d(%x, %w) {padding=[1,1,1,1], groups=20} : bf16[2,20,5,6]:nhwc
  %1 = relu(%0) : bf16[2,20,5,6]:nhwc
  %2 = conv2d_input_grad(%1, %w) {input_size=[5,6], padding=[1,1,1,1], groups=20} : bf16[2,20,5,6]:nhwc
  %3 = conv2d_weight_grad(%x, %1) {kernel_size=[3,3], padding=[1,1,1,1], groups=20} : bf16[20,1,3,3]
  %4 = conv2d(%y, %v) {stride=[2,2], padding=[1,1,1,1], groups=16} : f16[1,16,2,3]:nhwc
  return %1, %2, %3, %4
})"},
    {"linear", R"(graph @g(%x: f32[19,33], %w: f32[20,33], %b: f32[20]) {
  %0 = linear(%x, %w) : f32[19,20]
  %1 = add(%0, %b) : f32[19,20]
  %2 = permute(%1) {dims=[1,0]} : f32[20,19]
  %3 = matmul(%2, %x) : f32[20,33]
  return %1, %3
})"},
    {"pool", R"(graph @g(%x: f32[2,5,8,8], %g: f32[2,5,4,4], %h: f32[2,5,4,4]) {
  %0 = max_pool2d(%x) {kernel_size=[2,2]} : f32[2,5,4,4]
  %1 = max_pool2d_grad(%x, %g) {kernel_size=[2,2]} : f32[2,5,8,8]
  %2 = max_pool2d(%x) {kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]} : f32[2,5,4,4]
  %3 = max_pool2d_grad(%x, %h) {kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]} : f32[2,5,8,8]
  return %0, %1, %2, %3
})"},
    {"pool_taps", R"(graph @g(%x: f32[2,19,9,8]:nhwc, %g: f32[2,19,5,4]:nhwc, %y: f16[2,5,8,9], %h: f16[2,5,4,5]) {
  %r = relu(%x) : f32[2,19,9,8]:nhwc
  %0 = max_pool2d(%r) {kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]} : f32[2,19,5,4]:nhwc
  %1 = max_pool2d_tap(%r, %0) {kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]} : u8[2,19,5,4]:nhwc
  %2 = max_pool2d_tap_grad(%g, %1) {input_size=[9,8], kernel_size=[3,3], stride=[2,2], padding=[1,1,1,1]} : f32[2,19,9,8]:nhwc
  %3 = max_pool2d(%y) {kernel_size=[2,3], stride=[2,2], padding=[0,2,0,1]} : f16[2,5,4,5]
  %4 = max_pool2d_tap(%y, %3) {kernel_size=[2,3], stride=[2,2], padding=[0,2,0,1]} : u8[2,5,4,5]
  %5 = max_pool2d_tap_grad(%h, %4) {input_size=[8,9], kernel_size=[2,3], stride=[2,2], padding=[0,2,0,1]} : f16[2,5,8,9]
  %6 = max_pool2d_tap_grad(%h, %4) {input_size=[11,15], kernel_size=[2,3], stride=[3,3]} : f16[2,5,11,15]
  return %0, %1, %2, %4, %5, %6
})"},
    {"sums_over_windows",
     R"(graph @g(%x: f32[2,9,7,9]:nhwc, %y: f32[2,9,7,9]:nhwc, %g: f32[2,9,3,4]:nhwc, %z: f32[1,20,56,8]:nhwc, %h: f32[1,20,28,4]:nhwc) {
  %0 = max_pool2d_grad(%x, %g) {kernel_size=[2,2]} : f32[2,9,7,9]:nhwc
  %1 = add(%0, %y) : f32[2,9,7,9]:nhwc
  %2 = sum(%1) {dim=[0,2,3]} : f32[9]
  %3 = max_pool2d_grad(%z, %h) {kernel_size=[2,2]} : f32[1,20,56,8]:nhwc
  %4 = add(%3, %z) : f32[1,20,56,8]:nhwc
  %5 = sum(%4) {dim=[0,2,3]} : f32[20]
  return %1, %2, %4, %5
})"},
    {"average_pools",
     R"(graph @g(%x: f32[2,19,9,10]:nhwc, %y: f32[2,3,9,21], %g: f32[2,19,5,5]:nhwc, %h: f32[2,3,4,6]) {
  %r = relu(%x) : f32[2,19,9,10]:nhwc
  %0 = avg_pool2d(%r) {kernel_size=[3,2], stride=[2,2], padding=[1,0,1,0], count_include_pad=false} : f32[2,19,5,5]:nhwc
  %1 = avg_pool2d_grad(%g) {input_size=[9,10], kernel_size=[3,2], stride=[2,2], padding=[1,0,1,0], count_include_pad=false} : f32[2,19,9,10]:nhwc
  %2 = avg_pool2d(%y) {kernel_size=[2,3], stride=[2,4], padding=[0,1,0,1]} : f32[2,3,4,6]
  %3 = avg_pool2d_grad(%h) {input_size=[9,21], kernel_size=[2,3], stride=[2,4], padding=[0,1,0,1]} : f32[2,3,9,21]
  %4 = exp(%2) : f32[2,3,4,6]
  return %0, %1, %3, %4
})"},
    {"adaptive_pools",
     R"(graph @g(%x: f32[2,19,9,10]:nhwc, %y: f32[2,3,9,21], %g: f32[2,19,4,3]:nhwc, %h: f32[2,3,3,22]) {
  %0 = adaptive_avg_pool2d(%x) {output_size=[4,3]} : f32[2,19,4,3]:nhwc
  %1 = adaptive_avg_pool2d_grad(%g) {input_size=[9,10]} : f32[2,19,9,10]:nhwc
  %2 = adaptive_avg_pool2d(%y) {output_size=[3,22]} : f32[2,3,3,22]
  %3 = adaptive_avg_pool2d_grad(%h) {input_size=[9,21]} : f32[2,3,9,21]
  %4 = square(%x) : f32[2,19,9,10]:nhwc
  %5 = adaptive_avg_pool2d(%4) {output_size=[1,1]} : f32[2,19,1,1]:nhwc
  %6 = sigmoid(%5) : f32[2,19,1,1]:nhwc
  %7 = mul(%6, %x) : f32[2,19,9,10]:nhwc
  return %0, %1, %2, %3, %7
})"},
    {"nearest_neighbours", R"(graph @g(%x: f32[2,5,4,9], %g: f32[2,5,8,27], %h: f32[2,5,7,4]) {
  %0 = upsample_nearest2d(%x) {output_size=[8,27]} : f32[2,5,8,27]
  %1 = upsample_nearest2d(%x) {output_size=[7,4]} : f32[2,5,7,4]
  %2 = upsample_nearest2d_grad(%g) {input_size=[4,9]} : f32[2,5,4,9]
  %3 = upsample_nearest2d_grad(%h) {input_size=[4,9]} : f32[2,5,4,9]
  %4 = mul(%0, %g) : f32[2,5,8,27]
  return %4, %1, %2, %3
})"},
    {"linear_interpolation",
     R"(graph @g(%x: f32[2,19,5,6]:nhwc, %y: f32[2,3,4,9], %g: f32[2,19,10,9]:nhwc, %h: f32[2,3,3,5]) {
  %0 = upsample_bilinear2d(%x) {output_size=[10,9]} : f32[2,19,10,9]:nhwc
  %1 = mul(%0, %g) : f32[2,19,10,9]:nhwc
  %2 = upsample_bilinear2d_grad(%g) {input_size=[5,6]} : f32[2,19,5,6]:nhwc
  %3 = upsample_bilinear2d(%y) {output_size=[3,5], align_corners=true} : f32[2,3,3,5]
  %4 = upsample_bilinear2d_grad(%h) {input_size=[4,9], align_corners=true} : f32[2,3,4,9]
  %5 = upsample_bilinear2d(%y) {output_size=[8,18]} : f32[2,3,8,18]
  %6 = upsample_bilinear2d_grad(%5) {input_size=[4,9]} : f32[2,3,4,9]
  %7 = upsample_bilinear2d(%y) {output_size=[1,3]} : f32[2,3,1,3]
  return %1, %2, %3, %4, %6, %7
})"},
    {"linear_interpolation_of_types",
     R"(graph @g(%x: bf16[1,24,3,1]:nhwc, %y: f64[1,2,7,8], %z: f16[1,2,1,8], %g: f16[1,2,4,7]) {
  %0 = upsample_bilinear2d(%x) {output_size=[6,4]} : bf16[1,24,6,4]:nhwc
  %1 = upsample_bilinear2d(%y) {output_size=[3,3], align_corners=true} : f64[1,2,3,3]
  %2 = upsample_bilinear2d_grad(%1) {input_size=[7,8], align_corners=true} : f64[1,2,7,8]
  %3 = upsample_bilinear2d(%z) {output_size=[4,7], align_corners=true} : f16[1,2,4,7]
  %4 = upsample_bilinear2d_grad(%g) {input_size=[1,8]} : f16[1,2,1,8]
  return %0, %2, %3, %4
})"},
    {"rows_read_dim_by_dim", R"(graph @g(%x: f32[4,5,6], %w: f32[6,24], %s: f32[4,1,24], %t: f32[5,24]) {
  %0 = matmul(%x, %w) : f32[4,5,24]
  %1 = mul(%0, %s) : f32[4,5,24]
  %2 = add(%1, %t) : f32[4,5,24]
  %3 = sum(%2) {dim=[0,1]} : f32[24]
  return %2, %3
})"},
    {"products_of_a_batch",
     R"(graph @g(%q: f32[2,3,21,24], %k: f32[2,3,33,24], %v: f32[2,3,33,24], %s: f32[33], %d: f32[2,3,21,24]) {
  %0 = permute(%k) {dims=[0,1,3,2]} : f32[2,3,24,33]
  %1 = matmul(%q, %0) : f32[2,3,21,33]
  %2 = mul(%1, %s) : f32[2,3,21,33]
  %3 = softmax(%2) {dim=3} : f32[2,3,21,33]
  %4 = matmul(%3, %v) : f32[2,3,21,24]
  %5 = permute(%3) {dims=[0,1,3,2]} : f32[2,3,33,21]
  %6 = matmul(%5, %d) : f32[2,3,33,24]
  %7 = sum(%6) {dim=[0,1,2]} : f32[24]
  return %4, %6, %7
})"},
    {"products_compute_an_operand",
     R"(graph @g(%q: f32[2,3,21,24], %k: f32[2,3,24,33], %m: f32[2,1,21,33], %x: f32[40,37], %w: f32[24,40],
           %z: bf16[19,24], %u: bf16[24,16]) {
  %0 = mul(%q, 0.3) : f32[2,3,21,24]
  %1 = matmul(%0, %k) : f32[2,3,21,33]
  %2 = add(%1, %m) : f32[2,3,21,33]
  %3 = sub(1, %x) : f32[40,37]
  %4 = permute(%3) {dims=[1,0]} : f32[37,40]
  %5 = linear(%4, %w) : f32[37,24]
  %6 = relu(%z) : bf16[19,24]
  %7 = matmul(%6, %u) : bf16[19,16]
  return %2, %5, %7
})"},
    {"products_of_a_batch_broadcast",
     R"(graph @g(%a: bf16[2,1,9,24], %b: bf16[5,24,16], %c: f16[4,1,7], %d: f16[4,7,3], %e: f64[3,4,5], %f: f64[1,5,6]) {
  %0 = matmul(%a, %b) : bf16[2,5,9,16]
  %1 = relu(%0) : bf16[2,5,9,16]
  %2 = matmul(%c, %d) : f16[4,1,3]
  %3 = matmul(%e, %f) : f64[3,4,6]
  return %1, %2, %3
})"},
    {"dropout", R"(graph @g(%x: f32[11,13], %s: i64[]) {
  %0 = dropout(%x, %s) {p=0.5, stream=3} : f32[11,13]
  return %0
})"},
    {"half", R"(graph @g(%x: f16[5,40], %y: bf16[5,40]) {
  %0 = add(%x, 1) : f16[5,40]
  %1 = mul(%y, 0.5) : bf16[5,40]
  %2 = sum(%1) {dim=[1]} : bf16[5]
  return %0, %1, %2
})"},
    {"update_in_place", R"(graph @g(%w: f32[3,17], %m: f32[3,17], %v: f32[3,17], %g: f32[3,17], %lr: f32[]) {
  %0 = mul(%g, %lr) : f32[3,17]
  %1 = add(%m, %0) : f32[3,17]
  %2 = square(%g) : f32[3,17]
  %3 = add(%v, %2) : f32[3,17]
  %4 = mul(%1, %v) : f32[3,17]
  %5 = sub(%w, %4) : f32[3,17]
  return %3, %1, %5
})"},
    {"sums_over_a_donated_value", R"(graph @g(%x: f32[4,7,3,3], %y: f32[4,7,3,3]) {
  %0 = sub(%x, %y) : f32[4,7,3,3]
  %1 = mul(%x, %y) : f32[4,7,3,3]
  %2 = sum(%1) {dim=[0,2,3]} : f32[7]
  %3 = mean(%y) {dim=[0,2,3]} : f32[7]
  return %0, %2, %3
})"},
    {"squeeze_between", R"(graph @g(%x: f32[1,3,2,3], %w: f32[3,3,2,3], %b: f32[3]) {
  %0 = conv2d(%x, %w) : f32[1,3,1,1]
  %1 = squeeze(%0) {dim=[2,3]} : f32[1,3]
  %2 = add(%1, %b) : f32[1,3]
  return %2
})"},
    {"same_padding_nhwc", R"(graph @g(%x: f32[1,3,2,3]:nhwc, %w: f32[3,3,2,2], %b: f32[3]) {
  %0 = conv2d(%x, %w) {padding=[0,0,1,1]} : f32[1,3,2,3]:nhwc
  %1 = bias_add(%0, %b) : f32[1,3,2,3]:nhwc
  %2 = relu(%1) : f32[1,3,2,3]:nhwc
  return %2
})"},
    {"one_row_of_a_convolution_permuted", R"(graph @g(%x: f32[4,1,5,8], %w: f32[6,1,3,8]) {
  %0 = conv2d(%x, %w) {stride=[1,2], padding=[0,1,1,1], dilation=[2,1]} : f32[4,6,2,2]
  %1 = slice(%0) {starts=[0,0,0,0], stops=[4,6,1,2], steps=[1,1,1,1]} : f32[4,6,1,2]
  %2 = permute(%1) {dims=[1,0,2,3]} : f32[6,4,1,2]
  return %2
})"},
    {"one_padded_row", R"(graph @g(%x: f32[1,3,2,33], %w: f32[7,3,2,3], %v: f32[7,3,2,1]) {
  %0 = conv2d(%x, %w) {padding=[0,2,0,1], dilation=[1,2]} : f32[1,7,1,32]
  %1 = conv2d(%x, %v) : f32[1,7,1,33]
  return %0, %1
})"},
    {"cells_between_pads", R"(graph @g(%x: f32[2,5,4,3]) {
  %0 = reshape(%x) {shape=[2,5,4,1,3,1]} : f32[2,5,4,1,3,1]
  %1 = pad(%0) {low=[0,0,0,0,0,0], high=[0,0,0,2,0,0]} : f32[2,5,4,3,3,1]
  %2 = reshape(%1) {shape=[2,5,12,3]} : f32[2,5,12,3]
  %3 = pad(%2) {low=[0,0,1,0], high=[0,0,0,0]} : f32[2,5,13,3]
  %4 = pad(%3) {low=[0,0,0,8], high=[0,0,0,7]} : f32[2,5,13,18]
  %5 = unslice(%x) {shape=[2,5,4,9], starts=[0,0,0,2], steps=[1,1,1,3]} : f32[2,5,4,9]
  return %4, %5
})"},
    {"conv_grads_stride_and_dilation",
     R"(graph @g(%w: f32[6,3,3,3], %v: f32[5,2,4,1], %g: f32[2,6,3,3], %h: f32[1,5,2,2]) {
  %0 = conv2d_input_grad(%g, %w) {input_size=[7,9], stride=[2,3], padding=[1,1,1,2], dilation=[2,2]} : f32[2,3,7,9]
  %1 = conv2d_input_grad(%h, %v) {input_size=[21,2], stride=[4,1], padding=[0,0,2,0], dilation=[6,2]} : f32[1,2,21,2]
  return %0, %1
})"},
    {"recomputed_layer", R"(graph @g(%x: f32[2,3,8,8], %w: f32[5,3,3,3], %t: f32[2,5,6,6]) {
  %0 = conv2d(%x, %w) : f32[2,5,6,6]
  %1 = batch_norm_train(%0, 1, 0) : f32[2,5,6,6]
  %2 = relu(%1) : f32[2,5,6,6]
  %3 = mul(%2, %t) : f32[2,5,6,6]
  %4 = sum(%3) {dim=[0,1,2,3]} : f32[]
  %5 = le(%1, 0) : bool[2,5,6,6]
  %6 = where(%5, 0, %t) : f32[2,5,6,6]
  %7 = conv2d(%x, %w) @1 : f32[2,5,6,6]
  %8 = batch_norm_train_input_grad(%7, 1, %6) @1 : f32[2,5,6,6]
  %9 = conv2d_weight_grad(%x, %8) {kernel_size=[3,3]} : f32[5,3,3,3]
  return %4, %9
})"},
    {"value_read_twice", R"(graph @g(%x: f32[2,5,8,8], %g: f32[2,6,4,4], %w: f32[6,5,3,3]) {
  %c0 = conv2d(%x, %w) {padding=[1,1,1,1]} : f32[2,6,8,8]
  %r = relu(%c0) : f32[2,6,8,8]
  %p = max_pool2d(%r) {kernel_size=[2,2]} : f32[2,6,4,4]
  %q = relu(%p) : f32[2,6,4,4]
  %m = le(%p, 0) : bool[2,6,4,4]
  %g1 = where(%m, 0, %g) : f32[2,6,4,4]
  %gx = max_pool2d_grad(%r, %g1) {kernel_size=[2,2]} : f32[2,6,8,8]
  %m2 = le(%c0, 0) : bool[2,6,8,8]
  %gc = where(%m2, 0, %gx) : f32[2,6,8,8]
  %dw = conv2d_weight_grad(%x, %gc) {kernel_size=[3,3], padding=[1,1,1,1]} : f32[6,5,3,3]
  return %q, %dw
})"},
    {"double", R"(graph @g(%x: f64[2,3,6,6], %w: f64[4,3,3,3]) {
  %0 = conv2d(%x, %w) : f64[2,4,4,4]
  %1 = batch_norm_train(%0, 1, 0) {eps=0.001, correction=1, eps_outside=true} : f64[2,4,4,4]
  return %1
})"},
};

}  // namespace fusejit::testing
