// The operators. combine(a, b) folds one more operand into a; finalize(a, contributions) completes a value: avg
// divides, the logical operators give 0 or 1, the others do nothing. Names: baton_kernel::op::NAME, where the forms
// that ignore NaN are max_number, min_number, maxloc_number, minloc_number.

namespace baton_kernel {

// Explicit rounding on the device: neither contraction nor fast-math options of a caller can change these.
#if BATON_ON_DEVICE
BATON_FN float add(float a, float b) { float c; asm("add.rn.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b)); return c; }
BATON_FN float multiply(float a, float b) { float c; asm("mul.rn.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b)); return c; }
BATON_FN float divide(float a, float b) { float c; asm("div.rn.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b)); return c; }
BATON_FN double add(double a, double b) { double c; asm("add.rn.f64 %0, %1, %2;" : "=d"(c) : "d"(a), "d"(b)); return c; }
BATON_FN double multiply(double a, double b) { double c; asm("mul.rn.f64 %0, %1, %2;" : "=d"(c) : "d"(a), "d"(b)); return c; }
BATON_FN double divide(double a, double b) { double c; asm("div.rn.f64 %0, %1, %2;" : "=d"(c) : "d"(a), "d"(b)); return c; }
#else
BATON_FN float add(float a, float b) { return a + b; }
BATON_FN float multiply(float a, float b) { return a * b; }
BATON_FN float divide(float a, float b) { return a / b; }
BATON_FN double add(double a, double b) { return a + b; }
BATON_FN double multiply(double a, double b) { return a * b; }
BATON_FN double divide(double a, double b) { return a / b; }
#endif
// Integers wrap: computed unsigned, at the width of the type.
BATON_FN i8 add(i8 a, i8 b) { return i8(u8(u8(a) + u8(b))); }
BATON_FN u8 add(u8 a, u8 b) { return u8(a + b); }
BATON_FN i32 add(i32 a, i32 b) { return i32(u32(a) + u32(b)); }
BATON_FN u32 add(u32 a, u32 b) { return a + b; }
BATON_FN i64 add(i64 a, i64 b) { return i64(u64(a) + u64(b)); }
BATON_FN u64 add(u64 a, u64 b) { return a + b; }
BATON_FN i8 multiply(i8 a, i8 b) { return i8(u8(u8(a) * u8(b))); }
BATON_FN u8 multiply(u8 a, u8 b) { return u8(a * b); }
BATON_FN i32 multiply(i32 a, i32 b) { return i32(u32(a) * u32(b)); }
BATON_FN u32 multiply(u32 a, u32 b) { return a * b; }
BATON_FN i64 multiply(i64 a, i64 b) { return i64(u64(a) * u64(b)); }
BATON_FN u64 multiply(u64 a, u64 b) { return a * b; }
// avg: truncating; a divisor beyond the range of i8 and u8 is legal.
BATON_FN float average(float a, u32 n) { return divide(a, float(n)); }
BATON_FN double average(double a, u32 n) { return divide(a, double(n)); }
BATON_FN i8 average(i8 a, u32 n) { return i8(i64(a) / i64(n)); }
BATON_FN u8 average(u8 a, u32 n) { return u8(a / n); }
BATON_FN i32 average(i32 a, u32 n) { return i32(i64(a) / i64(n)); }
BATON_FN u32 average(u32 a, u32 n) { return a / n; }
BATON_FN i64 average(i64 a, u32 n) { return a / i64(n); }
BATON_FN u64 average(u64 a, u32 n) { return a / n; }

// Order with -0 below +0: the bits of a float, with the magnitude of negative ones inverted, compare as integers.
BATON_FN i32 key(float a) { const i32 bits = bit_cast<i32>(a); return bits ^ i32(u32(bits >> 31) >> 1); }
BATON_FN i64 key(double a) { const i64 bits = bit_cast<i64>(a); return bits ^ i64(u64(bits >> 63) >> 1); }
template <class V> BATON_FN V key(V a) { return a; }
BATON_FN bool is_nan(float a) { return a != a; }
BATON_FN bool is_nan(double a) { return a != a; }
template <class V> BATON_FN bool is_nan(V) { return false; }
template <class V> BATON_FN V nan_of(V) { return V(); }
BATON_FN float nan_of(float) { return bit_cast<float>(kNanF32); }
BATON_FN double nan_of(double) { return bit_cast<double>(kNanF64); }

template <bool kMax, bool kIgnoreNan, class V>
BATON_FN V extreme(V a, V b) {
    const V chosen = (kMax ? key(a) < key(b) : key(b) < key(a)) ? b : a;
    if (kIgnoreNan) return is_nan(a) ? b : is_nan(b) ? a : chosen;
    return is_nan(a) || is_nan(b) ? nan_of(a) : chosen;
}

// Pairs: the better value; then the lower index; then, for the two zeros, the bits: commutative to the last bit.
template <bool kMax, bool kIgnoreNan, class P>
BATON_FN P extreme_pair(P a, P b) {
    const bool nan_a = is_nan(a.value), nan_b = is_nan(b.value);
    const bool better = nan_b ? !kIgnoreNan && !nan_a
                      : nan_a ? kIgnoreNan
                              : (kMax ? b.value > a.value : b.value < a.value);
    const bool equal = nan_b ? nan_a : !nan_a && a.value == b.value;
    const bool sooner = b.index < a.index ||
                        (b.index == a.index && (kMax ? key(a.value) < key(b.value) : key(b.value) < key(a.value)));
    return better || (equal && sooner) ? b : a;
}

namespace op {

struct plain {
    template <class V> static BATON_FN V finalize(V a, u32) { return a; }
};
struct sum : plain {
    template <class V> static BATON_FN V combine(V a, V b) { return add(a, b); }
};
struct prod : plain {
    template <class V> static BATON_FN V combine(V a, V b) { return multiply(a, b); }
};
struct avg {
    template <class V> static BATON_FN V combine(V a, V b) { return add(a, b); }
    template <class V> static BATON_FN V finalize(V a, u32 contributions) { return average(a, contributions); }
};
struct max : plain {
    template <class V> static BATON_FN V combine(V a, V b) { return extreme<true, false>(a, b); }
};
struct min : plain {
    template <class V> static BATON_FN V combine(V a, V b) { return extreme<false, false>(a, b); }
};
struct max_number : plain {
    template <class V> static BATON_FN V combine(V a, V b) { return extreme<true, true>(a, b); }
};
struct min_number : plain {
    template <class V> static BATON_FN V combine(V a, V b) { return extreme<false, true>(a, b); }
};
struct logical {
    template <class V> static BATON_FN V finalize(V a, u32) { return V(a != 0); }
};
struct land : logical {
    template <class V> static BATON_FN V combine(V a, V b) { return V((a != 0) & (b != 0)); }
};
struct lor : logical {
    template <class V> static BATON_FN V combine(V a, V b) { return V((a != 0) | (b != 0)); }
};
struct lxor : logical {
    template <class V> static BATON_FN V combine(V a, V b) { return V((a != 0) ^ (b != 0)); }
};
struct band : plain {
    template <class V> static BATON_FN V combine(V a, V b) { return V(a & b); }
};
struct bor : plain {
    template <class V> static BATON_FN V combine(V a, V b) { return V(a | b); }
};
struct bxor : plain {
    template <class V> static BATON_FN V combine(V a, V b) { return V(a ^ b); }
};
struct maxloc : plain {
    template <class P> static BATON_FN P combine(P a, P b) { return extreme_pair<true, false>(a, b); }
};
struct minloc : plain {
    template <class P> static BATON_FN P combine(P a, P b) { return extreme_pair<false, false>(a, b); }
};
struct maxloc_number : plain {
    template <class P> static BATON_FN P combine(P a, P b) { return extreme_pair<true, true>(a, b); }
};
struct minloc_number : plain {
    template <class P> static BATON_FN P combine(P a, P b) { return extreme_pair<false, true>(a, b); }
};

}  // namespace op
}  // namespace baton_kernel
