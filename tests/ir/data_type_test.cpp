#include <baton/base/error.hpp>
#include <baton/ir/data_type.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

using namespace baton;
using namespace baton::ir;

TEST_CASE("numbers of data types are those of the C API") {
    CHECK(static_cast<int>(DataType::i8) == 0);
    CHECK(static_cast<int>(DataType::u8) == 1);
    CHECK(static_cast<int>(DataType::i32) == 2);
    CHECK(static_cast<int>(DataType::u32) == 3);
    CHECK(static_cast<int>(DataType::i64) == 4);
    CHECK(static_cast<int>(DataType::u64) == 5);
    CHECK(static_cast<int>(DataType::f16) == 6);
    CHECK(static_cast<int>(DataType::bf16) == 7);
    CHECK(static_cast<int>(DataType::f32) == 8);
    CHECK(static_cast<int>(DataType::f64) == 9);
    CHECK(static_cast<int>(DataType::f8e4m3) == 10);
    CHECK(static_cast<int>(DataType::f8e5m2) == 11);
    CHECK(static_cast<int>(DataType::f32_i32) == 12);
    CHECK(static_cast<int>(DataType::f64_i32) == 13);
    CHECK(static_cast<int>(DataType::i32_i32) == 14);
    CHECK(static_cast<int>(DataType::i64_i32) == 15);
    CHECK(all_data_types().size() == 16);
    CHECK(is_data_type(15));
    CHECK_FALSE(is_data_type(16));
    CHECK_FALSE(is_data_type(-1));
}

TEST_CASE("names of data types round-trip") {
    for (DataType type : all_data_types()) CHECK(parse_data_type(to_string(type)) == type);
    CHECK(to_string(DataType::f8e5m2) == "f8e5m2");
    CHECK(to_string(DataType::i64_i32) == "i64_i32");
}

TEST_CASE("an unknown data type is an error that lists the names") {
    try {
        parse_data_type("float", "call.json:/type");
        FAIL("accepted");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        CHECK(error.where() == "call.json:/type");
        CHECK(error.message().find("'float'") != std::string::npos);
        for (DataType type : all_data_types())
            CHECK(error.remedy().find(std::string(to_string(type))) != std::string::npos);
    }
    CHECK_THROWS_AS(parse_data_type(""), Error);
    CHECK_THROWS_AS(parse_data_type("F32"), Error);
}

TEST_CASE("sizes and alignments are those of the C structs") {
    struct F32 {
        float value;
        std::int32_t index;
    };
    struct F64 {
        double value;
        std::int32_t index;
    };
    struct I32 {
        std::int32_t value;
        std::int32_t index;
    };
    struct I64 {
        std::int64_t value;
        std::int32_t index;
    };
    CHECK(size_of(DataType::f32_i32) == sizeof(F32));
    CHECK(size_of(DataType::f64_i32) == sizeof(F64));
    CHECK(size_of(DataType::i32_i32) == sizeof(I32));
    CHECK(size_of(DataType::i64_i32) == sizeof(I64));
    CHECK(alignment_of(DataType::f32_i32) == alignof(F32));
    CHECK(alignment_of(DataType::f64_i32) == alignof(F64));
    for (DataType type : all_data_types()) {
        CHECK(elements_per_16_bytes(type) * size_of(type) == 16);
        CHECK(size_of(type) % alignment_of(type) == 0);
    }
    CHECK(elements_per_16_bytes(DataType::f64_i32) == 1);
    CHECK(elements_per_16_bytes(DataType::f8e4m3) == 16);
}

TEST_CASE("every data type belongs to exactly one family") {
    int pairs = 0, integers = 0, floats = 0;
    for (DataType type : all_data_types()) {
        CHECK(int(is_pair(type)) + int(is_integer(type)) + int(is_float(type)) == 1);
        if (is_narrow_float(type)) CHECK(is_float(type));
        if (is_signed_integer(type)) CHECK(is_integer(type));
        pairs += is_pair(type), integers += is_integer(type), floats += is_float(type);
        CHECK((value_type(type) == type) == !is_pair(type));
        CHECK((accumulator_type(type) == type) == !is_narrow_float(type));
    }
    CHECK(pairs == 4);
    CHECK(integers == 6);
    CHECK(floats == 6);
    CHECK(value_type(DataType::f64_i32) == DataType::f64);
    CHECK(accumulator_type(DataType::f8e5m2) == DataType::f32);
}
