// The prelude of every generated CUDA program: element types, conversions, vector access, arithmetic whose edges C++ does
// not fix, and reductions in a fixed order. No include, no include path. What is not plain C++ is an intrinsic that the
// CPU shim of the tests defines too, or stands under __CUDACC__ beside a portable twin with the same bits.
#define FJ_DEVICE static __device__ __forceinline__
#if defined(__CUDACC__)
#define FJ_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#endif

// ---- element types ------------------------------------------------------------------------------------------------
struct fj_f16 {
  unsigned short bits;
};
struct fj_bf16 {
  unsigned short bits;
};

template <class A, class B>
struct fj_is {
  enum : bool { same = false };
};
template <class A>
struct fj_is<A, A> {
  enum : bool { same = true };
};
template <class A, class... Bs>
constexpr bool fj_one_of = (fj_is<A, Bs>::same || ...);
template <class T>
constexpr bool fj_is_half = fj_one_of<T, fj_f16, fj_bf16>;
template <class T>
constexpr bool fj_is_narrow = fj_one_of<T, signed char, unsigned char, short>;
template <class T>
constexpr bool fj_is_float = fj_one_of<T, float, double>;

template <class T>
FJ_DEVICE T fj_infinity() {
  if constexpr (fj_is<T, double>::same) return __longlong_as_double(0x7ff0000000000000LL);
  else return __uint_as_float(0x7f800000u);
}
template <class T>
FJ_DEVICE T fj_nan() {
  if constexpr (fj_is<T, double>::same) return __longlong_as_double(0x7ff8000000000000LL);
  else return __uint_as_float(0x7fc00000u);
}
// The ends of an integer type.
template <class T>
constexpr T fj_least = T(-1) > T(0) ? T(0) : T(T(1) << (sizeof(T) * 8 - 1));
template <class T>
constexpr T fj_most = T(~fj_least<T>);

template <class T>
struct fj_unsigned_of {
  using type = T;
};
template <>
struct fj_unsigned_of<int> {
  using type = unsigned;
};
template <>
struct fj_unsigned_of<long long> {
  using type = unsigned long long;
};

// ---- conversions --------------------------------------------------------------------------------------------------
FJ_DEVICE unsigned fj_bits(float x) { return __float_as_uint(x); }
FJ_DEVICE unsigned long long fj_bits(double x) { return static_cast<unsigned long long>(__double_as_longlong(x)); }
FJ_DEVICE unsigned fj_bits(fj_f16 x) { return x.bits; }
FJ_DEVICE unsigned fj_bits(fj_bf16 x) { return x.bits; }

template <class T>
FJ_DEVICE T fj_from_bits(unsigned long long x) {
  if constexpr (fj_is<T, double>::same) return __longlong_as_double(static_cast<long long>(x));
  else if constexpr (fj_is<T, float>::same) return __uint_as_float(static_cast<unsigned>(x));
  else return T{static_cast<unsigned short>(x)};
}

FJ_DEVICE float fj_widen(fj_bf16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }
#if defined(__CUDACC__)
FJ_DEVICE float fj_widen(fj_f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
FJ_DEVICE void fj_narrow(float x, fj_f16& y) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); }
#else
// Denormals are normalised by one exact multiplication with 2^112.
FJ_DEVICE float fj_widen(fj_f16 x) {
  const unsigned rest = (x.bits & 0x7fffu) << 13;
  unsigned wide = __float_as_uint(__uint_as_float(rest) * 0x1p112f);
  if (rest >= 0x0f800000u) wide = rest | 0x7f800000u;
  if (rest > 0x0f800000u) wide |= 0x00400000u;
  return __uint_as_float(wide | (x.bits & 0x8000u) << 16);
}
// Normal results by integer rounding, denormal ones by adding 0.5, which rounds at 2^-24.
FJ_DEVICE void fj_narrow(float x, fj_f16& y) {
  const unsigned u = __float_as_uint(x), magnitude = u & 0x7fffffffu;
  unsigned result = (magnitude - (112u << 23) + (magnitude >> 13 & 1u) + 0xfffu) >> 13;
  if (magnitude < 113u << 23) result = __float_as_uint(__uint_as_float(magnitude) + 0.5f) - (126u << 23);
  if (magnitude >= 0x477ff000u) result = 0x7c00u;
  if (magnitude > 0x7f800000u) result = 0x7e00u;
  y.bits = static_cast<unsigned short>(result | (u >> 16 & 0x8000u));
}
#endif
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
FJ_DEVICE void fj_narrow(float x, fj_bf16& y) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); }
#else
FJ_DEVICE void fj_narrow(float x, fj_bf16& y) {
  const unsigned u = __float_as_uint(x), rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  y.bits = static_cast<unsigned short>(x != x ? (u >> 16 | 0x40u) : rounded);
}
#endif

// A float that rounds to a 16-bit type as x does: toward zero with the last bit set if anything was lost (rounding to
// odd), so that two roundings are one.
FJ_DEVICE float fj_odd(float x) { return x; }
FJ_DEVICE float fj_odd(double x) {
  const float nearest = static_cast<float>(x);
  const double back = static_cast<double>(nearest);
  if (back == x || x != x) return nearest;
  const unsigned bits = __float_as_uint(nearest) - (fabs(back) > fabs(x) ? 1u : 0u);
  return __uint_as_float(bits | 1u);
}
// Beyond 2^53 the low 11 bits of an integer become one sticky bit before it enters f64.
template <class T>
FJ_DEVICE float fj_odd(T x) {
  constexpr T kExact = T(1) << (sizeof(T) == 8 ? 53 : 0);
  const bool large = sizeof(T) == 8 && (x >= kExact || (T(-1) < T(0) && x <= -kExact));
  const T sticky = (x & T(0x7ff)) != 0 ? T(0x800) : T(0);
  return fj_odd(static_cast<double>(large ? T((x & ~T(0x7ff)) | sticky) : x));
}

// Toward zero, saturating, NaN to 0.
template <class To, class From>
FJ_DEVICE To fj_saturate(From x) {
  if (x != x) return To(0);
  if (x <= static_cast<From>(fj_least<To>)) return fj_least<To>;
  if (x >= static_cast<From>(fj_most<To>)) return fj_most<To>;  // most rounds up to a power of two, or is exact
  return static_cast<To>(x);
}

template <class To, class From>
FJ_DEVICE To fj_cast(From x) {
  if constexpr (fj_is<To, From>::same) {
    return x;
  } else if constexpr (fj_is_half<From>) {
    return fj_cast<To>(fj_widen(x));
  } else if constexpr (fj_is_narrow<From>) {
    return fj_cast<To>(static_cast<int>(x));
  } else if constexpr (fj_is<To, bool>::same) {
    return x != From(0);
  } else if constexpr (fj_is<From, bool>::same && !fj_is_half<To>) {
    return x ? To(1) : To(0);
  } else if constexpr (fj_is_half<To>) {
    To y;
    if constexpr (fj_is<From, bool>::same) fj_narrow(x ? 1.0f : 0.0f, y);
    else fj_narrow(fj_odd(x), y);
    return y;
  } else if constexpr (fj_is_float<From> && !fj_is_float<To>) {
    return fj_saturate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

// ---- lanes: N neighbouring elements, moved by accesses of 16 bytes ---------------------------------------------------
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) fj_lanes {
  T at[N];
  __device__ __forceinline__ T& operator[](int i) { return at[i]; }
  __device__ __forceinline__ const T& operator[](int i) const { return at[i]; }
};

template <int N, class T>
FJ_DEVICE fj_lanes<T, N> fj_splat(T x) {
  fj_lanes<T, N> y;
#pragma unroll
  for (int i = 0; i < N; ++i) y[i] = x;
  return y;
}
template <int N, class T>
FJ_DEVICE fj_lanes<T, N> fj_load(const T* p) {
  return *reinterpret_cast<const fj_lanes<T, N>*>(p);
}
// Element i of a whole number of words as float: one instruction on the word, where an element by itself takes one to
// come out of it and one more.
template <int N>
FJ_DEVICE float fj_widen(const fj_lanes<fj_bf16, N>& x, int i) {
  static_assert(N % 2 == 0);
  unsigned word;
  memcpy(&word, x.at + i / 2 * 2, sizeof word);
  return __uint_as_float(i % 2 == 0 ? word << 16 : word & 0xffff0000u);
}
template <int N, class T>
FJ_DEVICE void fj_store(T* p, const fj_lanes<T, N>& x) {
  *reinterpret_cast<fj_lanes<T, N>*>(p) = x;
}

// Bits: element i is bit i % 8 of byte i / 8.
FJ_DEVICE bool fj_load_bit(const unsigned char* p, long long i) { return (p[i >> 3] >> (i & 7) & 1) != 0; }
template <int N>
FJ_DEVICE fj_lanes<bool, N> fj_load_bits(const unsigned char* p) {
  fj_lanes<bool, N> y;
#pragma unroll
  for (int i = 0; i < N; ++i) y[i] = (p[i / 8] >> i % 8 & 1) != 0;
  return y;
}
// Bytes with an active lane are written; inactive lanes write 0.
template <int N>
FJ_DEVICE void fj_store_bits(unsigned char* p, const fj_lanes<bool, N>& x, const fj_lanes<bool, N>& active) {
#pragma unroll
  for (int b = 0; b < N / 8; ++b) {
    unsigned byte = 0, any = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      any |= active[b * 8 + i] ? 1u : 0u;
      byte |= (x[b * 8 + i] && active[b * 8 + i] ? 1u : 0u) << i;
    }
    if (any != 0) p[b] = static_cast<unsigned char>(byte);
  }
}
template <int N>
FJ_DEVICE void fj_store_bits(unsigned char* p, const fj_lanes<bool, N>& x) {
  fj_store_bits<N>(p, x, fj_splat<N>(true));
}

// ---- arithmetic: integers wrap; NaN wins and of equals the first --------------------------------------------------
template <class T>
FJ_DEVICE T fj_add(T a, T b) {
  using U = typename fj_unsigned_of<T>::type;
  return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
}
template <class T>
FJ_DEVICE T fj_sub(T a, T b) {
  using U = typename fj_unsigned_of<T>::type;
  return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
}
template <class T>
FJ_DEVICE T fj_mul(T a, T b) {
  using U = typename fj_unsigned_of<T>::type;
  return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
}
template <class T>
FJ_DEVICE T fj_negate(T x) {
  return fj_sub(T(0), x);
}
template <class T>
FJ_DEVICE T fj_maximum(T a, T b) {
  return b != b || b > a ? b : a;
}
template <class T>
FJ_DEVICE T fj_minimum(T a, T b) {
  return b != b || b < a ? b : a;
}
template <class T>
FJ_DEVICE T fj_abs(T x) {
  return x < T(0) ? fj_negate(x) : x;
}
template <class T>
FJ_DEVICE T fj_not(T x) {
  if constexpr (fj_is<T, bool>::same) return !x;
  else return ~x;
}
// By 0: 0. By -1: no division, which would overflow.
template <class T>
FJ_DEVICE T fj_floor_divide(T x, T y) {
  if (y == T(0)) return T(0);
  if (y == T(-1) && T(-1) < T(0)) return fj_negate(x);
  const T q = x / y;
  return x % y != T(0) && (x < T(0)) != (y < T(0)) ? q - T(1) : q;
}
template <class T>
FJ_DEVICE T fj_fmod(T x, T y) {
  return y == T(0) || (y == T(-1) && T(-1) < T(0)) ? T(0) : x % y;
}
// Modulo 2^n; a negative power of 1 is 1, of -1 is +-1, of others 0.
template <class T>
FJ_DEVICE T fj_pow(T x, T y) {
  if (y < T(0)) return x == T(1) ? T(1) : x == T(-1) ? ((y & T(1)) != T(0) ? T(-1) : T(1)) : T(0);
  T result = T(1);
  for (; y != T(0); y >>= 1) {
    if ((y & T(1)) != T(0)) result = fj_mul(result, x);
    x = fj_mul(x, x);
  }
  return result;
}
template <class T>
FJ_DEVICE T fj_sigmoid(T x) {
  if constexpr (fj_is<T, float>::same) {
    const float e = expf(-fabsf(x));
    return x >= 0.0f ? 1.0f / (1.0f + e) : e / (1.0f + e);
  } else {
    const double e = exp(-fabs(x));
    return x >= 0.0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
  }
}
FJ_DEVICE bool fj_isnan(double x) { return x != x; }
FJ_DEVICE bool fj_isinf(double x) { return fabs(x) == fj_infinity<double>(); }
FJ_DEVICE bool fj_isfinite(double x) { return fabs(x) < fj_infinity<double>(); }
FJ_DEVICE bool fj_isnan(float x) { return x != x; }
FJ_DEVICE bool fj_isinf(float x) { return fabsf(x) == fj_infinity<float>(); }
FJ_DEVICE bool fj_isfinite(float x) { return fabsf(x) < fj_infinity<float>(); }

// Index arithmetic: floor division and non-negative remainder by d > 0.
template <class T>
FJ_DEVICE T fj_floor_div(T x, T d) {
  return x / d - (x % d < T(0) ? T(1) : T(0));
}
template <class T>
FJ_DEVICE T fj_floor_mod(T x, T d) {
  return x % d + (x % d < T(0) ? d : T(0));
}
template <class T>
FJ_DEVICE T fj_larger(T a, T b) {
  return a < b ? b : a;
}
template <class T>
FJ_DEVICE T fj_smaller(T a, T b) {
  return b < a ? b : a;
}

// The four words of Philox4x32-10.
FJ_DEVICE void fj_philox(long long counter, long long stream, long long seed, unsigned& w0, unsigned& w1, unsigned& w2,
                         unsigned& w3) {
  unsigned k0 = static_cast<unsigned>(seed), k1 = static_cast<unsigned>(static_cast<unsigned long long>(seed) >> 32);
  w0 = static_cast<unsigned>(counter), w1 = static_cast<unsigned>(static_cast<unsigned long long>(counter) >> 32);
  w2 = static_cast<unsigned>(stream), w3 = static_cast<unsigned>(static_cast<unsigned long long>(stream) >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned long long p0 = 0xD2511F53ull * w0, p1 = 0xCD9E8D57ull * w2;
    w0 = static_cast<unsigned>(p1 >> 32) ^ w1 ^ k0, w1 = static_cast<unsigned>(p1);
    w2 = static_cast<unsigned>(p0 >> 32) ^ w3 ^ k1, w3 = static_cast<unsigned>(p0);
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
}
