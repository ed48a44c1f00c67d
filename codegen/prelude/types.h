// Names, macros and bit casts. No header is included on any side.

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define BATON_ON_DEVICE 1
#define BATON_FN __device__ __forceinline__
#define BATON_OUTLINE __device__ __forceinline__
#define BATON_UNROLL _Pragma("unroll")
#define BATON_MAY_ALIAS
#else
#define BATON_ON_DEVICE 0
#define BATON_FN inline __attribute__((always_inline))
// Large bodies: inlined on the device, where a call would force registers to memory; on the host one copy each, which
// compiles many times faster.
#define BATON_OUTLINE inline __attribute__((noinline))
#define BATON_UNROLL
#define BATON_MAY_ALIAS __attribute__((may_alias))
#endif

namespace baton_kernel {

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

static_assert(sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8, "unexpected integer widths");
static_assert(sizeof(void*) == 8, "64-bit addresses are assumed");
static_assert(sizeof(baton_arguments) <= 4096, "kernel arguments exceed 4 KiB");

// Storage of the 16-byte pairs; as C lays out {f64 or i64 value; i32 index;}, padding named.
struct BATON_MAY_ALIAS bits128 {
    u64 value;
    u32 index, padding;
};

template <class To, class From>
BATON_FN To bit_cast(From from) {
    static_assert(sizeof(To) == sizeof(From), "sizes differ");
    To to;
#if BATON_ON_DEVICE
    memcpy(&to, &from, sizeof to);  // a built-in of both CUDA compilers
#else
    __builtin_memcpy(&to, &from, sizeof to);
#endif
    return to;
}

template <class A, class B> struct same { static constexpr bool value = false; };
template <class A> struct same<A, A> { static constexpr bool value = true; };

BATON_FN u64 least(u64 a, u64 b) { return a < b ? a : b; }

}  // namespace baton_kernel
