// The element types: how each is stored (Bits) and in what it is computed (Value). encode() rounds, writes the canonical
// NaN and zero padding. Names are those of the data types.

namespace baton_kernel {

struct pair_f32 { float value; i32 index; };
struct pair_f64 { double value; i32 index; };
struct pair_i32 { i32 value; i32 index; };
struct pair_i64 { i64 value; i32 index; };

namespace element {

template <class Integer, class Storage>
struct integer {
    typedef Storage Bits;
    typedef Integer Value;
    static BATON_FN Value decode(Bits bits) { return Value(bits); }
    static BATON_FN Bits encode(Value value) { return Bits(value); }
};
typedef integer<baton_kernel::i8, baton_kernel::u8> i8;
typedef integer<baton_kernel::u8, baton_kernel::u8> u8;
typedef integer<baton_kernel::i32, baton_kernel::u32> i32;
typedef integer<baton_kernel::u32, baton_kernel::u32> u32;
typedef integer<baton_kernel::i64, baton_kernel::u64> i64;
typedef integer<baton_kernel::u64, baton_kernel::u64> u64;

struct f16 {
    typedef u16 Bits;
    typedef float Value;
    static BATON_FN Value decode(Bits bits) { return decode_f16(bits); }
    static BATON_FN Bits encode(Value value) { return encode_f16(value); }
};
struct bf16 {
    typedef u16 Bits;
    typedef float Value;
    static BATON_FN Value decode(Bits bits) { return decode_bf16(bits); }
    static BATON_FN Bits encode(Value value) { return encode_bf16(value); }
};
struct f8e4m3 {
    typedef baton_kernel::u8 Bits;
    typedef float Value;
    static BATON_FN Value decode(Bits bits) { return decode_e4m3(bits); }
    static BATON_FN Bits encode(Value value) { return encode_e4m3(value); }
};
struct f8e5m2 {
    typedef baton_kernel::u8 Bits;
    typedef float Value;
    static BATON_FN Value decode(Bits bits) { return decode_e5m2(bits); }
    static BATON_FN Bits encode(Value value) { return encode_e5m2(value); }
};
struct f32 {
    typedef baton_kernel::u32 Bits;
    typedef float Value;
    static BATON_FN Value decode(Bits bits) { return bit_cast<float>(bits); }
    static BATON_FN Bits encode(Value value) { return value != value ? kNanF32 : bit_cast<Bits>(value); }
};
struct f64 {
    typedef baton_kernel::u64 Bits;
    typedef double Value;
    static BATON_FN Value decode(Bits bits) { return bit_cast<double>(bits); }
    static BATON_FN Bits encode(Value value) { return value != value ? kNanF64 : bit_cast<Bits>(value); }
};

struct f32_i32 {
    typedef baton_kernel::u64 Bits;
    typedef pair_f32 Value;
    static BATON_FN Value decode(Bits bits) {
        return {bit_cast<float>(baton_kernel::u32(bits)), baton_kernel::i32(bits >> 32)};
    }
    static BATON_FN Bits encode(Value pair) {
        return Bits(f32::encode(pair.value)) | Bits(baton_kernel::u32(pair.index)) << 32;
    }
};
struct i32_i32 {
    typedef baton_kernel::u64 Bits;
    typedef pair_i32 Value;
    static BATON_FN Value decode(Bits bits) { return {baton_kernel::i32(bits), baton_kernel::i32(bits >> 32)}; }
    static BATON_FN Bits encode(Value pair) {
        return Bits(baton_kernel::u32(pair.value)) | Bits(baton_kernel::u32(pair.index)) << 32;
    }
};
struct f64_i32 {
    typedef bits128 Bits;
    typedef pair_f64 Value;
    static BATON_FN Value decode(Bits bits) { return {bit_cast<double>(bits.value), baton_kernel::i32(bits.index)}; }
    static BATON_FN Bits encode(Value pair) { return {f64::encode(pair.value), baton_kernel::u32(pair.index), 0}; }
};
struct i64_i32 {
    typedef bits128 Bits;
    typedef pair_i64 Value;
    static BATON_FN Value decode(Bits bits) { return {baton_kernel::i64(bits.value), baton_kernel::i32(bits.index)}; }
    static BATON_FN Bits encode(Value pair) {
        return {baton_kernel::u64(pair.value), baton_kernel::u32(pair.index), 0};
    }
};

}  // namespace element
}  // namespace baton_kernel
