// kernel @bn_stats(%p0: f32[12544,128] read align 16, %p1: f32[128] write align 16, %p2: f32[128] write align 16) on cuda {
//   work %w0: f32[98,128] align 16
//   work %w1: f32[98,128] align 16
//   phase registers 80 {
//     for %i0 in 0..98 grid.x {
//       for %i1 in 0..32 block.x {
//         for %i2 in 0..4 vector {
//           %0, %1, %2 = for %i3 in 0..8 block.y reduce welford : f32, f32, f32 {
//             %3, %4, %5 = for %i4 in 0..16 reduce welford : f32, f32, f32 {
//               %6 = load %p0[%i0*128 + %i3 + %i4*8, %i1*4 + %i2] : f32
//               %7 = load %p0[0, %i1*4 + %i2] : f32
//               %8 = sub(%6, %7) : f32
//               yield 1, %8, 0
//             }
//             yield %3, %4, %5
//           }
//           store %w0[%i0, %i1*4 + %i2], %1
//           store %w1[%i0, %i1*4 + %i2], %2
//         }
//       }
//     }
//   }
//   phase {
//     for %i5 in 0..1 grid.x {
//       for %i6 in 0..128 block.x {
//         %9, %10, %11 = for %i7 in 0..98 reduce welford : f32, f32, f32 {
//           %12 = load %w0[%i7, %i6] : f32
//           %13 = load %w1[%i7, %i6] : f32
//           yield 128, %12, %13
//         }
//         %14 = mul(%11, 7.971939e-05) : f32
//         %15 = add(%14, 1e-05) : f32
//         %16 = sqrt(%15) : f32
//         %17 = div(1, %16) : f32
//         %18 = load %p0[0, %i6] : f32
//         %19 = add(%18, %10) : f32
//         store %p1[%i6], %19
//         store %p2[%i6], %17
//       }
//     }
//   }
// }
extern "C" __global__ void __launch_bounds__(256, 3) kernel_bn_stats(const float* __restrict__ p0,
    float* __restrict__ p1, float* __restrict__ p2, unsigned char* work, unsigned* counter) {
  float* const w0 = reinterpret_cast<float*>(work);
  float* const w1 = reinterpret_cast<float*>(work + 50176);
  __shared__ __align__(16) unsigned char pool[12288];
  constexpr int p0_s0 = 128;  // p0[12544, 128]
  constexpr int w0_s0 = 128;  // w0[98, 128]
  constexpr int w1_s0 = 128;  // w1[98, 128]
  const int t = threadIdx.x + 32 * threadIdx.y;
  const int i0 = blockIdx.x;
  const int i1 = threadIdx.x;
  const int i3 = threadIdx.y;
  fj_lanes<float, 4> v0;
  fj_lanes<float, 4> v1;
  fj_lanes<float, 4> v2;
  fj_lanes<float, 4> v3 = fj_splat<4>(0.0f);
  fj_lanes<float, 4> v4 = fj_splat<4>(0.0f);
  fj_lanes<float, 4> v5 = fj_splat<4>(0.0f);
  for (int i4 = 0; i4 < 16; ++i4) {
    const fj_lanes<float, 4> v6 = fj_load<4>(p0 + (i0*128*p0_s0 + i1*4 + i3*p0_s0 + i4*8*p0_s0));
    const fj_lanes<float, 4> v7 = fj_load<4>(p0 + (i1*4));
    #pragma unroll
    for (int i2 = 0; i2 < 4; ++i2) {
      const float v8 = v6[i2] - v7[i2];
      fj_welford::combine(v3[i2], v4[i2], v5[i2], 1.0f, v8, 0.0f);
    }
  }
  #pragma unroll
  for (int i2 = 0; i2 < 4; ++i2) {
    v0[i2] = v3[i2];
    v1[i2] = v4[i2];
    v2[i2] = v5[i2];
  }
  fj_reduce_block_lanes<fj_welford, 8, 32, 256, 4>(t, pool, v0, v1, v2);
  if (threadIdx.y == 0) {
    fj_store(w0 + (i0*w0_s0 + i1*4), v1);
    fj_store(w1 + (i0*w1_s0 + i1*4), v2);
  }
  if (!fj_last_block(t, counter, 98u)) return;
  if (t >= 128) return;
  const int i5 = 0;
  const int i6 = t;
  float v9 = 0.0f;
  float v10 = 0.0f;
  float v11 = 0.0f;
  for (int i7 = 0; i7 < 98; ++i7) {
    const float v12 = w0[i6 + i7*w0_s0];
    const float v13 = w1[i6 + i7*w1_s0];
    fj_welford::combine(v9, v10, v11, 128.0f, v12, v13);
  }
  const float v14 = v11 * 7.971939e-05f;
  const float v15 = v14 + 1e-05f;
  const float v16 = sqrtf(v15);
  const float v17 = 1.0f / v16;
  const float v18 = p0[i6];
  const float v19 = v18 + v10;
  p1[i6] = v19;
  p2[i6] = v17;
}
