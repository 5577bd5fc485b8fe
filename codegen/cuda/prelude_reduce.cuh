// Reductions of the prelude (kernel-ir.md §5): combiners, and tree(L) over lanes and over an axis of a block, whose order
// is fixed: for d = L/2, ..., 1: x[i] = comb(x[i], x[i + d]); above 32, tree(32) of each run of 32, then the tree of those.

struct fj_sum {
  template <class T>
  FJ_DEVICE void combine(T& a, T b) {
    if constexpr (fj_is_float<T>) a = a + b;
    else a = fj_add(a, b);
  }
};
struct fj_product {
  template <class T>
  FJ_DEVICE void combine(T& a, T b) {
    if constexpr (fj_is_float<T>) a = a * b;
    else a = fj_mul(a, b);
  }
};
struct fj_largest {
  template <class T>
  FJ_DEVICE void combine(T& a, T b) {
    a = fj_maximum(a, b);
  }
};
struct fj_smallest {
  template <class T>
  FJ_DEVICE void combine(T& a, T b) {
    a = fj_minimum(a, b);
  }
};
struct fj_all {
  FJ_DEVICE void combine(bool& a, bool b) { a = a && b; }
};
struct fj_any {
  FJ_DEVICE void combine(bool& a, bool b) { a = a || b; }
};
// The first of the largest; NaN is larger than all. Five comparisons: one that fails says "or unordered" for free.
struct fj_argmax {
  template <class V, class I>
  FJ_DEVICE void combine(V& a, I& ai, V b, I bi) {
    const bool behind = !(b <= a) && a == a, ahead = !(a <= b) && b == b;
    if (behind || (bi < ai && !ahead)) a = b, ai = bi;
  }
};
struct fj_argmin {
  template <class V, class I>
  FJ_DEVICE void combine(V& a, I& ai, V b, I bi) {
    const bool behind = !(b >= a) && a == a, ahead = !(a >= b) && b == b;
    if (behind || (bi < ai && !ahead)) a = b, ai = bi;
  }
};
// Count, mean and sum of squared deviations of both sides together.
struct fj_welford {
  template <class T>
  FJ_DEVICE void combine(T& n, T& mean, T& m2, T bn, T bmean, T bm2) {
    const T total = n + bn;
    const T share = total == T(0) ? T(0) : bn / total;
    const T delta = bmean - mean;
    const T step = delta * share;
    mean = mean + step;
    m2 = (m2 + bm2) + delta * (step * n);
    n = total;
  }
};

// ---- lanes of one thread ------------------------------------------------------------------------------------------
template <class C, int N, class... T>
FJ_DEVICE void fj_reduce_lanes(fj_lanes<T, N>&... x) {
  constexpr int kRun = N < 32 ? N : 32;
#pragma unroll
  for (int d = kRun / 2; d > 0; d /= 2) {
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (i % kRun < d) C::combine(x[i]..., x[i + d]...);
  }
#pragma unroll
  for (int d = N / 64; d > 0; d /= 2) {
#pragma unroll
    for (int i = 0; i < d; ++i) C::combine(x[i * 32]..., x[(i + d) * 32]...);
  }
}

// ---- an axis of a block -------------------------------------------------------------------------------------------
// The components of one state, as they lie in shared memory.
template <class... T>
struct fj_state;
template <class A>
struct fj_state<A> {
  A a;
};
template <class A, class B>
struct fj_state<A, B> {
  A a;
  B b;
};
template <class A, class B, class D>
struct fj_state<A, B, D> {
  A a;
  B b;
  D d;
};
template <class C, class A>
FJ_DEVICE void fj_combine(fj_state<A>& x, const fj_state<A>& y) {
  C::combine(x.a, y.a);
}
template <class C, class A, class B>
FJ_DEVICE void fj_combine(fj_state<A, B>& x, const fj_state<A, B>& y) {
  C::combine(x.a, x.b, y.a, y.b);
}
template <class C, class A, class B, class D>
FJ_DEVICE void fj_combine(fj_state<A, B, D>& x, const fj_state<A, B, D>& y) {
  C::combine(x.a, x.b, x.d, y.a, y.b, y.d);
}

template <class A>
FJ_DEVICE void fj_assign(const fj_state<A>& x, A& a) {
  a = x.a;
}
template <class A, class B>
FJ_DEVICE void fj_assign(const fj_state<A, B>& x, A& a, B& b) {
  a = x.a, b = x.b;
}
template <class A, class B, class D>
FJ_DEVICE void fj_assign(const fj_state<A, B, D>& x, A& a, B& b, D& d) {
  a = x.a, b = x.b, d = x.d;
}

// From `lane` of a group of `width` threads, or from the thread `lane` further on.
template <bool kDown, class T>
FJ_DEVICE T fj_exchange(unsigned mask, T x, int lane, int width) {
  if constexpr (fj_is<T, bool>::same) return fj_exchange<kDown>(mask, x ? 1 : 0, lane, width) != 0;
  else if constexpr (kDown) return __shfl_down_sync(mask, x, lane, width);
  else return __shfl_sync(mask, x, lane, width);
}
template <bool kDown, class A>
FJ_DEVICE fj_state<A> fj_exchange(unsigned mask, const fj_state<A>& x, int lane, int width) {
  return {fj_exchange<kDown>(mask, x.a, lane, width)};
}
template <bool kDown, class A, class B>
FJ_DEVICE fj_state<A, B> fj_exchange(unsigned mask, const fj_state<A, B>& x, int lane, int width) {
  return {fj_exchange<kDown>(mask, x.a, lane, width), fj_exchange<kDown>(mask, x.b, lane, width)};
}
template <bool kDown, class A, class B, class D>
FJ_DEVICE fj_state<A, B, D> fj_exchange(unsigned mask, const fj_state<A, B, D>& x, int lane, int width) {
  return {fj_exchange<kDown>(mask, x.a, lane, width), fj_exchange<kDown>(mask, x.b, lane, width),
          fj_exchange<kDown>(mask, x.d, lane, width)};
}

// tree(N) of p[0], p[stride], ...
template <class C, int N, class S>
FJ_DEVICE S fj_tree(const S* p, int stride) {
  if constexpr (N == 1) {
    return *p;
  } else {
    S x = fj_tree<C, N / 2>(p, stride * 2);
    fj_combine<C>(x, fj_tree<C, N / 2>(p + stride, stride * 2));
    return x;
  }
}

// tree(RUN) of every run of RUN rows in place, by all threads: for states whose combination is long code. Rows lie ROW
// states apart.
template <class C, int RUN, int RUNS, int ROW, int THREADS, class S>
FJ_DEVICE void fj_trees_together(int t, S* pool) {
#pragma unroll 1
  for (int d = RUN / 2; d > 0; d /= 2) {
    for (int i = t; i < d * ROW * RUNS; i += THREADS) {
      S* const x = RUNS == 1 ? pool + i : pool + i / (d * ROW) * (RUN * ROW) + i % (d * ROW);
      fj_combine<C>(*x, x[d * ROW]);
    }
    __syncthreads();
  }
}

// tree(RUN) of every run, a column of it by one thread.
template <class C, int RUN, int RUNS, int ROW, int THREADS, class S>
FJ_DEVICE void fj_trees(int t, S* pool) {
  if constexpr (sizeof(S) > 8) {
    fj_trees_together<C, RUN, RUNS, ROW, THREADS>(t, pool);
  } else {
    for (int i = t; i < ROW * RUNS; i += THREADS) {
      S* const x = pool + i / ROW * (RUN * ROW) + i % ROW;
      *x = fj_tree<C, RUN>(x, ROW);
    }
    __syncthreads();
  }
}

// The threads of one reduction follow each other: shuffles, then shared memory where it takes several warps.
template <class C, int X, int THREADS, int N, class S>
FJ_DEVICE void fj_reduce_neighbours(int t, S* pool, S (&x)[N]) {
  constexpr int kWidth = X < 32 ? X : 32;
  // The last warp of a block may be short.
  const unsigned mask = THREADS % 32 != 0 && t / 32 == THREADS / 32 ? (1u << THREADS % 32) - 1u : 0xffffffffu;
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int d = kWidth / 2; d > 0; d /= 2) fj_combine<C>(x[n], fj_exchange<true>(mask, x[n], d, kWidth));
    if constexpr (X <= 32) x[n] = fj_exchange<false>(mask, x[n], 0, kWidth);
  }
  if constexpr (X > 32) {
    if (t % 32 == 0) {
#pragma unroll
      for (int n = 0; n < N; ++n) pool[t / 32 * N + n] = x[n];
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < N; ++n) x[n] = fj_tree<C, X / 32>(pool + t / X * (X / 32) * N + n, N);
    __syncthreads();
  }
}

// tree(RUNS) of the first rows of all runs of 32.
template <class C, int RUNS, int ROW, int THREADS, class S>
FJ_DEVICE void fj_trees_of_runs(int t, S* pool) {
  for (int i = t; i < ROW; i += THREADS) {
#pragma unroll 1
    for (int d = RUNS / 2; d > 0; d /= 2) {
#pragma unroll 1
      for (int r = 0; r < d; ++r) fj_combine<C>(pool[i + r * ROW * 32], pool[i + (r + d) * ROW * 32]);
    }
  }
  __syncthreads();
}

// The threads of one reduction lie STRIDE apart: all states go to shared memory, rows of equal place in the reduction,
// and each column is combined by one thread. CHUNK lanes at a time, so that they fit.
template <class C, int EXTENT, int STRIDE, int THREADS, int CHUNK, int N, class S>
FJ_DEVICE void fj_reduce_columns(int t, S* pool, S (&x)[N]) {
  constexpr int kColumns = THREADS / EXTENT, kRow = kColumns * CHUNK, kRun = EXTENT < 32 ? EXTENT : 32;
  const int row = t / STRIDE % EXTENT, column = t % STRIDE + t / (STRIDE * EXTENT) * STRIDE;
#pragma unroll
  for (int first = 0; first < N; first += CHUNK) {
#pragma unroll
    for (int n = 0; n < CHUNK; ++n) pool[row * kRow + n * kColumns + column] = x[first + n];
    __syncthreads();
    fj_trees<C, kRun, EXTENT / kRun, kRow, THREADS>(t, pool);
    if constexpr (EXTENT > 32) fj_trees_of_runs<C, EXTENT / 32, kRow, THREADS>(t, pool);
#pragma unroll
    for (int n = 0; n < CHUNK; ++n) x[first + n] = pool[n * kColumns + column];
    __syncthreads();
  }
}

// `t` is the thread's number in its block of THREADS; those of one reduction are EXTENT threads STRIDE apart.
template <class C, int EXTENT, int STRIDE, int THREADS, int CHUNK, int N, class S>
FJ_DEVICE void fj_reduce_states(int t, void* pool, S (&x)[N]) {
  if constexpr (STRIDE == 1) fj_reduce_neighbours<C, EXTENT, THREADS>(t, static_cast<S*>(pool), x);
  else fj_reduce_columns<C, EXTENT, STRIDE, THREADS, CHUNK>(t, static_cast<S*>(pool), x);
}
template <class C, int EXTENT, int STRIDE, int THREADS, int CHUNK, int N, class... T>
FJ_DEVICE void fj_reduce_block_lanes(int t, void* pool, fj_lanes<T, N>&... x) {
  fj_state<T...> states[N];
#pragma unroll
  for (int i = 0; i < N; ++i) states[i] = {x[i]...};
  fj_reduce_states<C, EXTENT, STRIDE, THREADS, CHUNK>(t, pool, states);
#pragma unroll
  for (int i = 0; i < N; ++i) fj_assign(states[i], x[i]...);
}
template <class C, int EXTENT, int STRIDE, int THREADS, class... T>
FJ_DEVICE void fj_reduce_block(int t, void* pool, T&... x) {
  fj_state<T...> states[1] = {{x...}};
  fj_reduce_states<C, EXTENT, STRIDE, THREADS, 1>(t, pool, states);
  fj_assign(states[0], x...);
}

// True in every thread of the block that finishes last of all; the stores of the others are then visible to it.
FJ_DEVICE bool fj_last_block(int t, unsigned* counter, unsigned blocks) {
  __shared__ bool last;
  __syncthreads();
  if (t == 0) {
    __threadfence();
    last = atomicAdd(counter, 1u) == blocks - 1;
    if (last) *counter = 0;
    __threadfence();
  }
  __syncthreads();
  return last;
}
