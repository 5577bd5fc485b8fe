// kernel @shared_panels(%p0: f32[24,8] read align 16, %p1: f32[8] read align 16, %p2: f32[8] read align 16, %p3: f32[8,8] read align 16, %p4: f32[24,8] write align 16) on cuda {
//   phase registers 128 {
//     for %i0 in 0..3 grid.x {
//       local %l0: f32[4,2,2,4] register = 0
//       local %l1: f32[8,8] scratch
//       local %l2: f32[4,8] scratch
//       for %i1 in 0..2 {
//         for %i2 in 0..4 block.y {
//           for %i3 in 0..2 block.x {
//             for %i4 in 0..4 vector {
//               %0 = load %p0[%i0*8 + %i2*2 + %i3, %i1*4 + %i4] : f32
//               %1 = load %p1[%i1*4 + %i4] : f32
//               %2 = load %p2[%i1*4 + %i4] : f32
//               %3 = fma(%0, %1, %2) : f32
//               %4 = maximum(%3, 0) : f32
//               store %l1[%i2*2 + %i3, %i4], %4
//             }
//             for %i5 in 0..4 vector {
//               %5 = load %p3[%i1*4 + %i2, %i3*4 + %i5] : f32
//               store %l2[%i2, %i3*4 + %i5], %5
//             }
//           }
//         }
//         for %i6 in 0..4 block.y {
//           for %i7 in 0..2 block.x {
//             for %i8 in 0..4 vector {
//               for %i9 in 0..4 {
//                 for %i10 in 0..2 unroll {
//                   %6 = load %l1[%i6 + %i10*4, %i9] : f32
//                   %7 = load %l2[%i9, %i7*4 + %i8] : f32
//                   %8 = load %l0[%i6, %i7, %i10, %i8] : f32
//                   %9 = fma(%6, %7, %8) : f32
//                   store %l0[%i6, %i7, %i10, %i8], %9
//                 }
//               }
//             }
//           }
//         }
//       }
//       for %i11 in 0..4 block.y {
//         for %i12 in 0..2 block.x {
//           for %i13 in 0..4 vector {
//             for %i14 in 0..2 unroll {
//               %10 = load %l0[%i11, %i12, %i14, %i13] : f32
//               store %p4[%i0*8 + %i11 + %i14*4, %i12*4 + %i13], %10
//             }
//           }
//         }
//       }
//     }
//   }
// }
extern "C" __global__ void __launch_bounds__(8, 16) kernel_shared_panels(const float* __restrict__ p0,
    const float* __restrict__ p1, const float* __restrict__ p2, const float* __restrict__ p3, float* __restrict__ p4) {
  __shared__ __align__(16) float l1[64];
  __shared__ __align__(16) float l2[32];
  constexpr int p0_s0 = 8;  // p0[24, 8]
  constexpr int p3_s0 = 8;  // p3[8, 8]
  constexpr int p4_s0 = 8;  // p4[24, 8]
  const int i0 = blockIdx.x;
  float l0[8] = {};
  for (int i1 = 0; i1 < 2; ++i1) {
    __syncthreads();
    const int i2 = threadIdx.y;
    const int i3 = threadIdx.x;
    const fj_lanes<float, 4> v0 = fj_load<4>(p0 + (i0*8*p0_s0 + i1*4 + i2*2*p0_s0 + i3*p0_s0));
    const fj_lanes<float, 4> v1 = fj_load<4>(p1 + (i1*4));
    const fj_lanes<float, 4> v2 = fj_load<4>(p2 + (i1*4));
    fj_lanes<float, 4> v4;
    #pragma unroll
    for (int i4 = 0; i4 < 4; ++i4) {
      const float v3 = __fmaf_rn(v0[i4], v1[i4], v2[i4]);
      v4[i4] = fj_maximum(v3, 0.0f);
    }
    fj_store(l1 + (i2*16 + i3*8), v4);
    const fj_lanes<float, 4> v5 = fj_load<4>(p3 + (i1*4*p3_s0 + i2*p3_s0 + i3*4));
    fj_store(l2 + (i2*8 + i3*4), v5);
    __syncthreads();
    const int i6 = threadIdx.y;
    const int i7 = threadIdx.x;
    for (int i9 = 0; i9 < 4; ++i9) {
      #pragma unroll
      for (int i10 = 0; i10 < 2; ++i10) {
        const float v6 = l1[i6*8 + i9 + i10*32];
        const fj_lanes<float, 4> v7 = fj_load<4>(l2 + (i7*4 + i9*8));
        #pragma unroll
        for (int i8 = 0; i8 < 4; ++i8) {
          const float v8 = l0[i8 + i10*4];
          const float v9 = __fmaf_rn(v6, v7[i8], v8);
          l0[i8 + i10*4] = v9;
        }
      }
    }
  }
  const int i11 = threadIdx.y;
  const int i12 = threadIdx.x;
  #pragma unroll
  for (int i14 = 0; i14 < 2; ++i14) {
    fj_lanes<float, 4> v10;
    #pragma unroll
    for (int i13 = 0; i13 < 4; ++i13) {
      v10[i13] = l0[i13 + i14*4];
    }
    fj_store(p4 + (i0*8*p4_s0 + i11*p4_s0 + i12*4 + i14*4*p4_s0), v10);
  }
}
