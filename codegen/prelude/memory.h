// Loads and stores of data. On the device through explicit global-space instructions, so that addresses read from
// tables never decay to generic accesses; on the host plain accesses that may alias any type.

namespace baton_kernel {

#if BATON_ON_DEVICE

BATON_FN u64 global_address(const void* pointer) {
    u64 address;
    asm("cvta.to.global.u64 %0, %1;" : "=l"(address) : "l"(pointer));
    return address;
}

struct words16 { u32 word[4]; };

BATON_FN words16 load16(const void* pointer) {
    words16 w;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w.word[0]), "=r"(w.word[1]), "=r"(w.word[2]), "=r"(w.word[3])
                 : "l"(global_address(pointer)) : "memory");
    return w;
}
BATON_FN void store16(void* pointer, const words16& w) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                 :: "l"(global_address(pointer)), "r"(w.word[0]), "r"(w.word[1]), "r"(w.word[2]), "r"(w.word[3])
                 : "memory");
}

BATON_FN void load_bits(const void* pointer, u8& bits) {
    u16 wide;
    asm volatile("ld.global.u8 %0, [%1];" : "=h"(wide) : "l"(global_address(pointer)) : "memory");
    bits = u8(wide);
}
BATON_FN void load_bits(const void* pointer, u16& bits) {
    asm volatile("ld.global.u16 %0, [%1];" : "=h"(bits) : "l"(global_address(pointer)) : "memory");
}
BATON_FN void load_bits(const void* pointer, u32& bits) {
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(bits) : "l"(global_address(pointer)) : "memory");
}
BATON_FN void load_bits(const void* pointer, u64& bits) {
    asm volatile("ld.global.u64 %0, [%1];" : "=l"(bits) : "l"(global_address(pointer)) : "memory");
}
BATON_FN void load_bits(const void* pointer, bits128& bits) {  // 8-byte alignment is all a pair promises
    u64 high;
    load_bits(pointer, bits.value);
    load_bits(static_cast<const char*>(pointer) + 8, high);
    bits.index = u32(high);
    bits.padding = u32(high >> 32);
}
BATON_FN void store_bits(void* pointer, u8 bits) {
    asm volatile("st.global.u8 [%0], %1;" :: "l"(global_address(pointer)), "h"(u16(bits)) : "memory");
}
BATON_FN void store_bits(void* pointer, u16 bits) {
    asm volatile("st.global.u16 [%0], %1;" :: "l"(global_address(pointer)), "h"(bits) : "memory");
}
BATON_FN void store_bits(void* pointer, u32 bits) {
    asm volatile("st.global.u32 [%0], %1;" :: "l"(global_address(pointer)), "r"(bits) : "memory");
}
BATON_FN void store_bits(void* pointer, u64 bits) {
    asm volatile("st.global.u64 [%0], %1;" :: "l"(global_address(pointer)), "l"(bits) : "memory");
}
BATON_FN void store_bits(void* pointer, const bits128& bits) {
    store_bits(pointer, bits.value);
    store_bits(static_cast<char*>(pointer) + 8, u64(bits.index) | u64(bits.padding) << 32);
}

#else

template <class Bits>
struct aliasing { typedef Bits __attribute__((may_alias)) type; };
template <>
struct aliasing<bits128> { typedef bits128 type; };

template <class Bits>
BATON_FN void load_bits(const void* pointer, Bits& bits) {
    bits = *static_cast<const typename aliasing<Bits>::type*>(pointer);
}
template <class Bits>
BATON_FN void store_bits(void* pointer, Bits bits) {
    *static_cast<typename aliasing<Bits>::type*>(pointer) = bits;
}

#endif

}  // namespace baton_kernel
