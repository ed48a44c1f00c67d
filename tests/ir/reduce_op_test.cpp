#include <baton/base/error.hpp>
#include <baton/ir/reduce_op.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace baton;
using namespace baton::ir;

TEST_CASE("numbers of operators are those of the C API") {
    const char* names[] = {"sum",  "prod", "max", "min",  "avg",    "land",  "lor",
                           "lxor", "band", "bor", "bxor", "maxloc", "minloc"};
    CHECK(all_reduce_ops().size() == 13);
    for (int i = 0; i < 13; ++i) {
        CHECK(to_string(static_cast<ReduceOp>(i)) == names[i]);
        CHECK(parse_reduce_op(names[i]) == static_cast<ReduceOp>(i));
        CHECK(is_reduce_op(i));
    }
    CHECK(static_cast<int>(ReduceOp::avg) == 4);
    CHECK(static_cast<int>(ReduceOp::minloc) == 12);
    CHECK_FALSE(is_reduce_op(13));
    CHECK_FALSE(is_reduce_op(-1));
    CHECK(static_cast<int>(NanMode::propagate) == 0);
    CHECK(static_cast<int>(NanMode::ignore) == 1);
    CHECK(parse_nan_mode("ignore") == NanMode::ignore);
    CHECK(parse_nan_mode("propagate") == NanMode::propagate);
    CHECK_THROWS_AS(parse_nan_mode("maybe"), Error);
}

TEST_CASE("an unknown operator is an error that lists the names") {
    try {
        parse_reduce_op("average");
        FAIL("accepted");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        CHECK(error.remedy().find("avg") != std::string::npos);
        CHECK(error.remedy().find("minloc") != std::string::npos);
    }
}

TEST_CASE("operators are valid on the types they have a meaning on") {
    int pairs = 0;
    for (ReduceOp op : all_reduce_ops())
        for (DataType type : all_data_types()) pairs += valid(op, type);
    CHECK(pairs == 5 * 12 + 6 * 6 + 2 * 4);
    CHECK(valid(ReduceOp::avg, DataType::i8));
    CHECK(valid(ReduceOp::max, DataType::f8e5m2));
    CHECK_FALSE(valid(ReduceOp::band, DataType::f32));
    CHECK_FALSE(valid(ReduceOp::land, DataType::f16));
    CHECK_FALSE(valid(ReduceOp::sum, DataType::f32_i32));
    CHECK_FALSE(valid(ReduceOp::maxloc, DataType::f32));
    CHECK(valid(ReduceOp::maxloc, DataType::i64_i32));
    CHECK_NOTHROW(check_valid(ReduceOp::sum, DataType::bf16));
}

TEST_CASE("a pair without meaning is an error that lists the valid ones") {
    try {
        check_valid(ReduceOp::maxloc, DataType::f32, "/op");
        FAIL("accepted");
    } catch (const Error& error) {
        CHECK(
            std::string(error.what()) ==
            "/op: operator maxloc has no meaning on type f32; maxloc takes: f32_i32 f64_i32 i32_i32 i64_i32; "
            "f32 allows: sum prod max min avg");
    }
}

TEST_CASE("avg on f16 and f8 is always wide, others on demand") {
    for (ReduceOp op : all_reduce_ops())
        for (DataType type : all_data_types()) {
            const bool forced = op == ReduceOp::avg && (type == DataType::f16 || type == DataType::f8e4m3 ||
                                                        type == DataType::f8e5m2);
            CHECK(always_wide(op, type) == forced);
            CHECK(wire_type(op, type, false) == (forced ? DataType::f32 : type));
            CHECK(wire_type(op, type, true) == (is_narrow_float(type) ? DataType::f32 : type));
        }
}
