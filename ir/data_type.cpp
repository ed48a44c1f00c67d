#include <baton/ir/data_type.hpp>

#include <baton/base/error.hpp>

#include <array>

namespace baton::ir {
namespace {

enum class Family : std::uint8_t { signed_integer, unsigned_integer, narrow_float, full_float, pair };

struct Facts {
    std::string_view name;
    std::uint8_t size, alignment;
    Family family;
    DataType value;
};

constexpr std::array<Facts, 16> kFacts = {{
    {"i8", 1, 1, Family::signed_integer, DataType::i8},
    {"u8", 1, 1, Family::unsigned_integer, DataType::u8},
    {"i32", 4, 4, Family::signed_integer, DataType::i32},
    {"u32", 4, 4, Family::unsigned_integer, DataType::u32},
    {"i64", 8, 8, Family::signed_integer, DataType::i64},
    {"u64", 8, 8, Family::unsigned_integer, DataType::u64},
    {"f16", 2, 2, Family::narrow_float, DataType::f16},
    {"bf16", 2, 2, Family::narrow_float, DataType::bf16},
    {"f32", 4, 4, Family::full_float, DataType::f32},
    {"f64", 8, 8, Family::full_float, DataType::f64},
    {"f8e4m3", 1, 1, Family::narrow_float, DataType::f8e4m3},
    {"f8e5m2", 1, 1, Family::narrow_float, DataType::f8e5m2},
    {"f32_i32", 8, 4, Family::pair, DataType::f32},
    {"f64_i32", 16, 8, Family::pair, DataType::f64},
    {"i32_i32", 8, 4, Family::pair, DataType::i32},
    {"i64_i32", 16, 8, Family::pair, DataType::i64},
}};

const Facts& facts(DataType type) {
    const auto number = static_cast<std::size_t>(type);
    if (number >= kFacts.size())
        throw input_error("there is no data type with number " + std::to_string(number));
    return kFacts[number];
}

}  // namespace

const std::vector<DataType>& all_data_types() {
    static const std::vector<DataType> types = [] {
        std::vector<DataType> all;
        for (std::size_t i = 0; i < kFacts.size(); ++i) all.push_back(static_cast<DataType>(i));
        return all;
    }();
    return types;
}

std::string_view to_string(DataType type) { return facts(type).name; }

DataType parse_data_type(std::string_view name, const std::string& where) {
    for (std::size_t i = 0; i < kFacts.size(); ++i)
        if (kFacts[i].name == name) return static_cast<DataType>(i);
    std::string names;
    for (const Facts& each : kFacts) names += (names.empty() ? "" : " ") + std::string(each.name);
    throw input_error("'" + std::string(name.substr(0, 64)) + "' is not a data type", where,
                      "use one of: " + names);
}

bool is_data_type(int value) { return value >= 0 && value < static_cast<int>(kFacts.size()); }

std::int64_t size_of(DataType type) { return facts(type).size; }
std::int64_t alignment_of(DataType type) { return facts(type).alignment; }
std::int64_t elements_per_16_bytes(DataType type) { return 16 / facts(type).size; }

bool is_pair(DataType type) { return facts(type).family == Family::pair; }
bool is_integer(DataType type) {
    return facts(type).family == Family::signed_integer || facts(type).family == Family::unsigned_integer;
}
bool is_signed_integer(DataType type) { return facts(type).family == Family::signed_integer; }
bool is_float(DataType type) {
    return facts(type).family == Family::narrow_float || facts(type).family == Family::full_float;
}
bool is_narrow_float(DataType type) { return facts(type).family == Family::narrow_float; }
DataType value_type(DataType type) { return facts(type).value; }
DataType accumulator_type(DataType type) { return is_narrow_float(type) ? DataType::f32 : type; }

}  // namespace baton::ir
