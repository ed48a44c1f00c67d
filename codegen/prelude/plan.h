// What the emitted part of a module is written in: the types of an entry, addresses of places, constant tables.

// A table of constants, in the memory of whoever runs the kernel.
#if BATON_ON_DEVICE
#define BATON_TABLE static __device__ const
#else
#define BATON_TABLE static const
#endif

namespace baton_kernel {

// One (operator, type) with the type that messages and scratch places hold.
template <class Operator, class DataElement, class WireElement>
struct Entry {
    typedef Operator Op;
    typedef DataElement Element;
    static constexpr u32 size = sizeof(typename DataElement::Bits);     // bytes of an element in input and output
    static constexpr u32 wire = sizeof(typename WireElement::Bits);     // and in messages and scratch
    static constexpr u32 unit = 16 / size;                              // elements per 16 bytes of data
    // The width mask of operands of which those in `operands` hold the wire type.
    BATON_FN static constexpr u32 wide(u32 operands) { return wire == size ? 0u : operands; }
};

// move, with the operands that hold the wire type (messages and scratch) as bits of two masks.
template <class E, u32 kWireSources, u32 kWireDestinations, bool kFinalize, int kDestinations, int kSources>
BATON_FN void apply(const Block& block, void* const (&destination)[kDestinations],
                    const void* const (&source)[kSources], u64 n) {
    move<typename E::Op, typename E::Element, E::wide(kWireSources), E::wide(kWireDestinations), kFinalize>(
        block, destination, source, n);
}

// (base + i * step) mod `modulus`, for loops over places that wrap.
BATON_FN u32 wrapped(u32 base, u32 i, u32 step, u32 modulus) { return u32((base + u64(i) * step) % modulus); }

// Where `range` of shard `shard` begins in input or output.
template <class E, class Byte>
BATON_FN Byte* in_shard(const Block& block, Byte* buffer, u64 shard, Range range) {
    return buffer + (shard * block.arguments.count + range.begin) * E::size;
}
// Where `range` of a chunk that begins at element `chunk_begin` lies in scratch place `place`.
template <class E>
BATON_FN u8* in_scratch(const Block& block, u8* scratch, u64 place, u64 chunk_begin, Range range) {
    return scratch + place * block.arguments.scratch_stride + (range.begin - chunk_begin) * E::wire;
}

}  // namespace baton_kernel
