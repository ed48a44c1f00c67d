#include <baton/ir/numerics.hpp>

#include <baton/base/error.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace baton::ir {
namespace {

// The parameters of an IEEE-like binary format.
struct Format {
    int exponent_bits, mantissa_bits;
    double largest;   // finite
    bool infinities;  // has them
    bool saturates;   // stores the largest finite value instead of overflowing
    std::uint16_t nan;
    int bits() const { return 1 + exponent_bits + mantissa_bits; }
    int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};

Format format_of(DataType type) {
    switch (type) {
        case DataType::f16: return {5, 10, 65504.0, true, false, 0x7e00};
        case DataType::bf16: return {8, 7, 0x1.fep127, true, false, 0x7fc0};
        case DataType::f8e4m3: return {4, 3, 448.0, false, true, 0x7f};
        case DataType::f8e5m2: return {5, 2, 57344.0, true, true, 0x7e};
        default: throw internal_error("not a narrow float: " + std::string(to_string(type)));
    }
}

template <class T>
T load(const void* from, std::int64_t i) {
    T value;
    std::memcpy(&value, static_cast<const char*>(from) + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    return value;
}
template <class T>
void store(void* to, std::int64_t i, T value) {
    std::memcpy(static_cast<char*>(to) + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

float f32_nan() { return std::bit_cast<float>(std::uint32_t{0x7fc00000}); }
double f64_nan() { return std::bit_cast<double>(std::uint64_t{0x7ff8000000000000}); }

template <class V>
struct Pair {
    V value;
    std::int32_t index;
};
template <class T>
inline constexpr bool is_pair_value = false;
template <class V>
inline constexpr bool is_pair_value<Pair<V>> = true;

// Loads element i of an operand as the value that is computed with.
template <class V>
V load_value(DataType type, const void* data, std::int64_t i) {
    if constexpr (is_pair_value<V>) {
        using Value = decltype(V::value);
        const char* at = static_cast<const char*>(data) + i * size_of(type);
        return {load<Value>(at, 0), load<std::int32_t>(at + sizeof(Value), 0)};
    } else if constexpr (std::is_same_v<V, float>) {
        switch (type) {
            case DataType::f32: return load<float>(data, i);
            case DataType::f16:
            case DataType::bf16: return decode_narrow(type, load<std::uint16_t>(data, i));
            default: return decode_narrow(type, load<std::uint8_t>(data, i));
        }
    } else {
        return load<V>(data, i);
    }
}

template <class V>
void store_value(DataType type, void* data, std::int64_t i, V value) {
    if constexpr (is_pair_value<V>) {
        char* at = static_cast<char*>(data) + i * size_of(type);
        std::memset(at, 0, static_cast<std::size_t>(size_of(type)));
        store_value(value_type(type), at, 0, value.value);
        store(at + sizeof value.value, 0, value.index);
    } else if constexpr (std::is_same_v<V, float>) {
        switch (type) {
            case DataType::f32: store(data, i, std::isnan(value) ? f32_nan() : value); break;
            case DataType::f16:
            case DataType::bf16: store(data, i, encode_narrow(type, value)); break;
            default: store(data, i, static_cast<std::uint8_t>(encode_narrow(type, value)));
        }
    } else if constexpr (std::is_same_v<V, double>) {
        store(data, i, std::isnan(value) ? f64_nan() : value);
    } else {
        store(data, i, value);
    }
}

template <class V>
bool nan(V value) {
    if constexpr (std::is_floating_point_v<V>)
        return std::isnan(value);
    else
        return false;
}
// a < b with -0 below +0; not for NaN.
template <class V>
bool below(V a, V b) {
    if constexpr (std::is_floating_point_v<V>)
        if (a == b) return std::signbit(a) && !std::signbit(b);
    return a < b;
}

template <class V>
V arithmetic(ReduceOp op, V a, V b) {
    if constexpr (std::is_floating_point_v<V>) {
        return op == ReduceOp::prod ? a * b : a + b;
    } else {
        const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
        return static_cast<V>(op == ReduceOp::prod ? x * y : x + y);
    }
}

template <class V>
V combine(ReduceOp op, NanMode mode, V a, V b) {
    if constexpr (is_pair_value<V>) {
        const bool max = op == ReduceOp::maxloc;
        if (nan(a.value) != nan(b.value)) return nan(a.value) == (mode == NanMode::propagate) ? a : b;
        if (!nan(a.value) && a.value != b.value) return (a.value > b.value) == max ? a : b;
        if (a.index != b.index) return a.index < b.index ? a : b;
        return below(a.value, b.value) == max ? b : a;
    } else {
        switch (op) {
            case ReduceOp::sum:
            case ReduceOp::avg:
            case ReduceOp::prod: return arithmetic(op, a, b);
            case ReduceOp::max:
            case ReduceOp::min:
                if (nan(a)) return mode == NanMode::propagate ? a : b;
                if (nan(b)) return mode == NanMode::propagate ? b : a;
                return below(a, b) == (op == ReduceOp::max) ? b : a;
            default: break;
        }
        if constexpr (std::is_integral_v<V>) {
            switch (op) {
                case ReduceOp::land: return static_cast<V>(a && b);
                case ReduceOp::lor: return static_cast<V>(a || b);
                case ReduceOp::lxor: return static_cast<V>(!a != !b);
                case ReduceOp::band: return static_cast<V>(a & b);
                case ReduceOp::bor: return static_cast<V>(a | b);
                case ReduceOp::bxor: return static_cast<V>(a ^ b);
                default: break;
            }
        }
        throw internal_error("operator " + std::string(to_string(op)) +
                             " reached a type it has no meaning on");
    }
}

template <class V>
V complete(const ReduceRule& rule, V value) {
    if (!rule.finalize) return value;
    if constexpr (!is_pair_value<V>) {
        if (rule.op == ReduceOp::avg) {
            if constexpr (std::is_floating_point_v<V>) {
                value = value / static_cast<V>(rule.contributions);
            } else if constexpr (std::is_signed_v<V>) {
                value = static_cast<V>(static_cast<std::int64_t>(value) / rule.contributions);
            } else {
                value = static_cast<V>(static_cast<std::uint64_t>(value) /
                                       static_cast<std::uint64_t>(rule.contributions));
            }
        } else if (rule.op == ReduceOp::land || rule.op == ReduceOp::lor || rule.op == ReduceOp::lxor) {
            value = value != V{} ? V{1} : V{0};
        }
        if constexpr (std::is_same_v<V, float>)
            if (is_narrow_float(rule.type)) value = decode_narrow(rule.type, encode_narrow(rule.type, value));
    }
    return value;
}

template <class V>
void run(const ReduceRule& rule, std::span<const ConstOperand> sources,
         std::span<const MutableOperand> destinations, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        V value = load_value<V>(sources[0].type, sources[0].data, i);
        for (std::size_t s = 1; s < sources.size(); ++s)
            value = combine(rule.op, rule.nan, value, load_value<V>(sources[s].type, sources[s].data, i));
        value = complete(rule, value);
        for (const MutableOperand& each : destinations) store_value(each.type, each.data, i, value);
    }
}

template <class Operand>
void check_types(const ReduceRule& rule, std::span<const Operand> operands, const char* role) {
    if (operands.empty()) throw input_error("a reduction has no " + std::string(role));
    for (const Operand& each : operands)
        if (each.type != rule.type && !(is_narrow_float(rule.type) && each.type == DataType::f32))
            throw input_error("an operand of type " + std::string(to_string(each.type)) +
                              " in a reduction of " + std::string(to_string(rule.type)));
}

}  // namespace

float decode_narrow(DataType type, std::uint16_t code) {
    const Format format = format_of(type);
    const int mantissa = code & ((1 << format.mantissa_bits) - 1);
    const int exponent = (code >> format.mantissa_bits) & ((1 << format.exponent_bits) - 1);
    const bool negative = (code >> (format.bits() - 1) & 1) != 0;
    double value;
    if (exponent == (1 << format.exponent_bits) - 1 && format.infinities) {
        value = mantissa == 0 ? std::numeric_limits<double>::infinity() : f64_nan();
    } else if (!format.infinities && (code & 0x7f) == format.nan) {
        value = f64_nan();
    } else if (exponent == 0) {
        value = std::ldexp(mantissa, 1 - format.bias() - format.mantissa_bits);
    } else {
        value = std::ldexp((1 << format.mantissa_bits) + mantissa,
                           exponent - format.bias() - format.mantissa_bits);
    }
    return static_cast<float>(negative ? -value : value);
}

std::uint16_t encode_narrow(DataType type, float number) {
    const Format format = format_of(type);
    if (std::isnan(number)) return format.nan;
    const unsigned sign = std::signbit(number) ? 1u << (format.bits() - 1) : 0u;
    const double magnitude = std::fabs(static_cast<double>(number));
    const auto code_of = [&](double value) {  // of a representable finite value
        if (value == 0) return 0u;
        int exponent = std::max(std::ilogb(value), 1 - format.bias());
        const auto significand = static_cast<unsigned>(std::ldexp(value, format.mantissa_bits - exponent));
        // A subnormal has no leading one: its exponent field is 0.
        const unsigned implicit = 1u << format.mantissa_bits;
        return significand < implicit
                   ? significand
                   : (static_cast<unsigned>(exponent + format.bias()) << format.mantissa_bits) + significand -
                         implicit;
    };
    const unsigned infinity = ((1u << format.exponent_bits) - 1u) << format.mantissa_bits;
    double rounded = magnitude;
    if (std::isfinite(magnitude) && magnitude != 0) {
        const double unit =
            std::ldexp(1.0, std::max(std::ilogb(magnitude), 1 - format.bias()) - format.mantissa_bits);
        rounded = std::nearbyint(magnitude / unit) * unit;
    }
    if (rounded > format.largest)
        return static_cast<std::uint16_t>(sign | (format.saturates ? code_of(format.largest) : infinity));
    return static_cast<std::uint16_t>(sign | code_of(rounded));
}

double to_double(DataType type, const void* element) {
    switch (value_type(type)) {
        case DataType::i8: return load<std::int8_t>(element, 0);
        case DataType::u8: return load<std::uint8_t>(element, 0);
        case DataType::i32: return load<std::int32_t>(element, 0);
        case DataType::u32: return load<std::uint32_t>(element, 0);
        case DataType::i64: return static_cast<double>(load<std::int64_t>(element, 0));
        case DataType::u64: return static_cast<double>(load<std::uint64_t>(element, 0));
        case DataType::f64: return load<double>(element, 0);
        default: return static_cast<double>(load_value<float>(value_type(type), element, 0));
    }
}

namespace {
template <class T>
T saturated(double value) {
    if (std::isnan(value)) return 0;
    if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(value);
}

// Through f32 in two roundings would not be the nearest code; round to odd in between.
float narrowed_for_rounding(double value) {
    const float nearest = static_cast<float>(value);
    if (!std::isfinite(value) || static_cast<double>(nearest) == value) return nearest;
    const float toward_zero =
        std::fabs(static_cast<double>(nearest)) > std::fabs(value) || std::isinf(nearest)
            ? std::nextafter(nearest, 0.0f)
            : nearest;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(toward_zero) | 1u);
}
}  // namespace

void from_double(DataType type, double value, void* element, std::int32_t index) {
    if (is_pair(type)) {
        std::memset(element, 0, static_cast<std::size_t>(size_of(type)));
        from_double(value_type(type), value, element);
        store(static_cast<char*>(element) + size_of(value_type(type)), 0, index);
        return;
    }
    switch (type) {
        case DataType::i8: return store(element, 0, saturated<std::int8_t>(value));
        case DataType::u8: return store(element, 0, saturated<std::uint8_t>(value));
        case DataType::i32: return store(element, 0, saturated<std::int32_t>(value));
        case DataType::u32: return store(element, 0, saturated<std::uint32_t>(value));
        case DataType::i64: return store(element, 0, saturated<std::int64_t>(value));
        case DataType::u64: return store(element, 0, saturated<std::uint64_t>(value));
        case DataType::f64: return store_value(type, element, 0, value);
        case DataType::f32: return store_value(type, element, 0, static_cast<float>(value));
        default: return store_value(type, element, 0, narrowed_for_rounding(value));
    }
}

void canonical_nan(DataType type, void* element) {
    if (!is_float(value_type(type)))
        throw input_error("type " + std::string(to_string(type)) + " has no NaN");
    from_double(type, f64_nan(), element);
}

void reduce_operands(const ReduceRule& rule, std::span<const ConstOperand> sources,
                     std::span<const MutableOperand> destinations, std::int64_t count) {
    check_types(rule, sources, "source");
    check_types(rule, destinations, "destination");
    if (count <= 0) return;
    if (sources.size() == 1 && !rule.finalize) {
        bool copies = true;
        for (const MutableOperand& each : destinations) copies = copies && each.type == sources[0].type;
        if (copies) {
            for (const MutableOperand& each : destinations)
                std::memmove(each.data, sources[0].data,
                             static_cast<std::size_t>(count * size_of(each.type)));
            return;
        }
    }
    check_valid(rule.op, rule.type);
    if (rule.finalize && rule.contributions < 1) throw input_error("avg over fewer than one contribution");
    switch (rule.type) {
        case DataType::i8: return run<std::int8_t>(rule, sources, destinations, count);
        case DataType::u8: return run<std::uint8_t>(rule, sources, destinations, count);
        case DataType::i32: return run<std::int32_t>(rule, sources, destinations, count);
        case DataType::u32: return run<std::uint32_t>(rule, sources, destinations, count);
        case DataType::i64: return run<std::int64_t>(rule, sources, destinations, count);
        case DataType::u64: return run<std::uint64_t>(rule, sources, destinations, count);
        case DataType::f64: return run<double>(rule, sources, destinations, count);
        case DataType::f32_i32: return run<Pair<float>>(rule, sources, destinations, count);
        case DataType::f64_i32: return run<Pair<double>>(rule, sources, destinations, count);
        case DataType::i32_i32: return run<Pair<std::int32_t>>(rule, sources, destinations, count);
        case DataType::i64_i32: return run<Pair<std::int64_t>>(rule, sources, destinations, count);
        default: return run<float>(rule, sources, destinations, count);
    }
}

void reduce_buffers(ReduceOp op, DataType type, NanMode nan_mode, std::span<const void* const> sources,
                    void* destination, std::int64_t count) {
    std::vector<ConstOperand> operands;
    for (const void* each : sources) operands.push_back({each, type});
    const MutableOperand to{destination, type};
    reduce_operands({op, type, nan_mode, true, static_cast<std::int64_t>(sources.size())}, operands, {&to, 1},
                    count);
}

}  // namespace baton::ir
