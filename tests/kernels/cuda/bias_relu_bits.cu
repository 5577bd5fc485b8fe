// kernel @bias_relu_bits(%p0: bf16[1000,64] read align 16, %p1: f32[64] read align 16, %p2: bf16[1000,64] write align 16, %p3: b1[1000,64] write align 16) on cuda {
//   phase {
//     for %i0 in 0..32 grid.x {
//       for %i1 in 0..32 block.y {
//         for %i2 in 0..8 block.x {
//           if %i0*32 + %i1 < 1000 {
//             for %i3 in 0..8 vector {
//               %0 = load %p0[%i0*32 + %i1, %i2*8 + %i3] : bf16
//               %1 = cast(%0) : f32
//               %2 = load %p1[%i2*8 + %i3] : f32
//               %3 = add(%1, %2) : f32
//               %4 = maximum(%3, 0) : f32
//               %5 = cast(%4) : bf16
//               %6 = le(%3, 0) : bool
//               %7 = logical_not(%6) : bool
//               store %p2[%i0*32 + %i1, %i2*8 + %i3], %5
//               store %p3[%i0*32 + %i1, %i2*8 + %i3], %7
//             }
//           }
//         }
//       }
//     }
//   }
// }
extern "C" __global__ void __launch_bounds__(256) kernel_bias_relu_bits(const fj_bf16* __restrict__ p0,
    const float* __restrict__ p1, fj_bf16* __restrict__ p2, unsigned char* __restrict__ p3) {
  constexpr int p0_s0 = 64;  // p0[1000, 64]
  constexpr int p2_s0 = 64;  // p2[1000, 64]
  const int i0 = blockIdx.x;
  const int i1 = threadIdx.y;
  const int i2 = threadIdx.x;
  if (i0*32 + i1 < 1000) {
    const fj_lanes<fj_bf16, 8> v0 = fj_load<8>(p0 + (i0*32*p0_s0 + i1*p0_s0 + i2*8));
    const fj_lanes<float, 8> v2 = fj_load<8>(p1 + (i2*8));
    fj_lanes<fj_bf16, 8> v5;
    fj_lanes<bool, 8> v7;
    #pragma unroll
    for (int i3 = 0; i3 < 8; ++i3) {
      const float v1 = fj_cast<float>(v0[i3]);
      const float v3 = v1 + v2[i3];
      const float v4 = fj_maximum(v3, 0.0f);
      v5[i3] = fj_cast<fj_bf16>(v4);
      const bool v6 = v3 <= 0.0f;
      v7[i3] = !v6;
    }
    fj_store(p2 + (i0*32*p2_s0 + i1*p2_s0 + i2*8), v5);
    fj_store_bits<8>(p3 + (i0*256 + i1*8 + i2), v7);
  }
}
