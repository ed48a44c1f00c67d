// Faults that collective libraries have had, each as a test of its own: roots, in place, odd and small
// counts, single ranks, numerics, large offsets, calls that change.
#include "support/collective_run.hpp"
#include "support/full.hpp"
#include "support/kind_algorithms.hpp"

#include <baton/base/error.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/numerics.hpp>

#include <doctest/doctest.h>
#include <cmath>
#include <limits>

using namespace baton;
using namespace baton::runtime;
using ir::CollectiveKind;
using ir::DataType;
using ir::ReduceOp;

namespace {

Interpreter lowered(const ir::Algorithm& algorithm,
                    codegen::ModePreference mode = codegen::ModePreference::staged, bool wide = false) {
    codegen::LowerOptions options;
    options.mode = mode;
    options.wide = wide;
    return Interpreter(codegen::lower(algorithm, options));
}

constexpr std::array kModes{codegen::ModePreference::staged, codegen::ModePreference::put,
                            codegen::ModePreference::get};

void check(Interpreter& interpreter, const CallArguments& arguments, bool in_place,
           const InterpretOptions& options = {}) {
    CHECK_MESSAGE(test::faults_of(interpreter, arguments, in_place, options) == "",
                  test::words(interpreter.program(), arguments, in_place, options));
}

/// All-reduces one value a rank (given as doubles), in every algorithm; the results must be the same
/// everywhere.
double all_reduced(const std::vector<double>& values, DataType type, ReduceOp op,
                   ir::NanMode nan = ir::NanMode::propagate) {
    const int ranks = static_cast<int>(values.size());
    double result = 0;
    bool first = true;
    for (const auto& algorithm : test::algorithms_for(CollectiveKind::all_reduce, ranks, 0)) {
        Interpreter interpreter = lowered(algorithm, codegen::ModePreference::staged, true);
        const CallArguments arguments{1, type, op, nan};
        const test::Buffers buffers(algorithm.collective, arguments, false);
        for (int r = 0; r < ranks; ++r)
            ir::from_double(type, values[static_cast<std::size_t>(r)], buffers.input(r));
        interpreter.run(arguments, buffers.pointers());
        for (int r = 0; r < ranks; ++r) {
            const double each = ir::to_double(type, buffers.output(r));
            if (first) result = each;
            CHECK((each == result || (std::isnan(each) && std::isnan(result))));
            first = false;
        }
    }
    return result;
}

std::string error_of(const std::function<void()>& run) {
    try {
        run();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("trap: a broadcast takes the data of its root, not of rank 0") {
    for (int root = 0; root < 2; ++root) {
        Interpreter interpreter = lowered(test::chain_broadcast(2, root, 1));
        const CallArguments arguments{3, DataType::i32};
        std::vector<std::vector<std::int32_t>> in{{1, 2, 3}, {4, 5, 6}}, out(2, std::vector<std::int32_t>(3));
        interpreter.run(arguments, std::vector<RankBuffers>{{in[0].data(), out[0].data()},
                                                            {in[1].data(), out[1].data()}});
        CHECK(out[0] == in[root]);
        CHECK(out[1] == in[root]);
    }
}

TEST_CASE("trap: buffers may be null where a rank has nothing to send or to receive") {
    for (const auto kind : {CollectiveKind::broadcast, CollectiveKind::scatter, CollectiveKind::gather,
                            CollectiveKind::reduce, CollectiveKind::send_recv}) {
        for (const auto& algorithm : test::algorithms_for(kind, 4, 2)) {
            const auto& c = algorithm.collective;
            Interpreter interpreter = lowered(algorithm);
            const CallArguments arguments{5};
            const test::Buffers buffers(c, arguments, false);
            int nulls = 0;
            for (int r = 0; r < 4; ++r) {
                CHECK((buffers.pointers()[r].input == nullptr) == (c.places(r, ir::Buffer::input) == 0));
                CHECK((buffers.pointers()[r].output == nullptr) == (c.places(r, ir::Buffer::output) == 0));
                nulls += (buffers.pointers()[r].input == nullptr) + (buffers.pointers()[r].output == nullptr);
            }
            CHECK(nulls >= 3);
            check(interpreter, arguments, false);
            // But not where it has something.
            auto pointers = buffers.pointers();
            for (auto& each : pointers)
                if (each.output != nullptr) each.output = nullptr;
            CHECK(error_of([&] { interpreter.run(arguments, pointers); }).find("is null") !=
                  std::string::npos);
        }
    }
}

TEST_CASE("trap: pointers that mean nothing for a kind are ignored, in place or not") {
    // In a broadcast only the root has an input; callers pass output as input everywhere.
    Interpreter interpreter = lowered(test::chain_broadcast(3, 1, 2));
    std::vector<std::vector<std::int32_t>> data{{0, 0}, {7, 8}, {0, 0}};
    std::vector<RankBuffers> buffers;
    for (auto& each : data) buffers.push_back({each.data(), each.data()});
    interpreter.run({2, DataType::i32}, buffers);
    for (const auto& each : data) CHECK(each == std::vector<std::int32_t>{7, 8});
}

TEST_CASE("trap: in-place all-gather reads the shard at its place in the output") {
    for (const auto& algorithm : test::algorithms_for(CollectiveKind::all_gather, 3, 0)) {
        for (const auto mode : kModes) {
            Interpreter interpreter = lowered(algorithm, mode);
            std::vector<std::vector<std::int32_t>> out(3, std::vector<std::int32_t>(15, -1));
            std::vector<RankBuffers> buffers;
            for (int r = 0; r < 3; ++r) {
                for (int i = 0; i < 5; ++i) out[r][r * 5 + i] = 10 * r + i;
                buffers.push_back({out[r].data() + r * 5, out[r].data()});
            }
            interpreter.run({5, DataType::i32}, buffers);
            for (const auto& each : out)
                for (int i = 0; i < 15; ++i) CHECK(each[i] == 10 * (i / 5) + i % 5);
        }
    }
}

TEST_CASE("trap: in-place offsets follow one rule per kind, and anything else is refused in words") {
    const auto offset = [](CollectiveKind kind, int rank) {
        return in_place_offset(test::collective(kind, 4, 3, 2), rank, 10);
    };
    CHECK(offset(CollectiveKind::all_reduce, 3) == 0);
    CHECK(offset(CollectiveKind::all_to_all, 3) == 0);
    CHECK(offset(CollectiveKind::all_gather, 3) == 30);
    CHECK(offset(CollectiveKind::reduce_scatter, 3) == -30);
    CHECK(offset(CollectiveKind::broadcast, 2) == 0);
    CHECK(!offset(CollectiveKind::broadcast, 1));
    CHECK(offset(CollectiveKind::reduce, 2) == 0);
    CHECK(offset(CollectiveKind::gather, 2) == 20);
    CHECK(!offset(CollectiveKind::gather, 1));
    CHECK(offset(CollectiveKind::scatter, 2) == -20);
    CHECK(!offset(CollectiveKind::send_recv, 2));

    Interpreter interpreter = lowered(test::ring_all_gather(2));
    std::vector<float> a(40), b(40);
    const std::vector<RankBuffers> shifted{{a.data() + 1, a.data()}, {b.data() + 10, b.data()}};
    CHECK(error_of([&] { interpreter.run({10}, shifted); }) ==
          "rank 0: input and output overlap in part; in place, the input starts 0 elements after the start "
          "of the output");
    // Ranks may mix: one in place, one not.
    const std::vector<RankBuffers> mixed{{a.data(), a.data()}, {b.data() + 30, b.data()}};
    for (int i = 0; i < 10; ++i) a[i] = float(i), b[30 + i] = float(100 + i);
    interpreter.run({10}, mixed);
    for (int i = 0; i < 10; ++i) {
        CHECK(b[i] == float(i));
        CHECK(a[10 + i] == float(100 + i));
    }
}

TEST_CASE("trap: counts of 1 to 64 elements on 3 and 6 ranks, also as reduce_scatter") {
    for (const int ranks : {3, 6})
        for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter})
            for (const auto& algorithm : test::algorithms_for(kind, ranks, 0)) {
                Interpreter interpreter = lowered(algorithm);
                for (std::int64_t count = 1; count <= 64; ++count)
                    check(interpreter, {count}, count % 2 == 0);
            }
}

TEST_CASE("trap: counts below the number of ranks, zero among them") {
    for (const auto kind : ir::standard_kinds())
        for (const auto& algorithm : test::algorithms_for(kind, 7, 3)) {
            Interpreter interpreter = lowered(algorithm);
            for (const std::int64_t count : {0, 1, 2, 6}) {
                check(interpreter, {count, DataType::u8}, false, {3});
                check(interpreter, {count, DataType::f64}, true, {3});
            }
            // With nothing to move every pointer may be null.
            CHECK_NOTHROW(interpreter.run({0}, std::vector<RankBuffers>(7)));
        }
}

TEST_CASE("trap: broadcast on ranks that are no power of two, sizes around the edges of chunks") {
    for (const int ranks : {3, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15}) {
        Interpreter interpreter = lowered(test::chain_broadcast(ranks, ranks / 2, ranks));
        const std::int64_t edge = std::int64_t{4} * ranks;  // one 16-byte unit in each chunk
        for (const std::int64_t count :
             {edge - 5, edge - 4, edge - 3, edge - 1, edge, edge + 1, edge + 4, 2 * edge - 1, 2 * edge + 1})
            check(interpreter, {count}, count % 2 == 0, {2});
    }
}

TEST_CASE("trap: one rank alone completes its value") {
    for (const auto kind : ir::standard_kinds())
        for (const auto& algorithm : test::algorithms_for(kind, 1, 0)) {
            Interpreter interpreter = lowered(algorithm, codegen::ModePreference::staged, true);
            for (const auto& [type, op] : test::pairs_for(kind))
                for (const bool in_place : {false, true}) check(interpreter, {9, type, op}, in_place);
        }
    CHECK(all_reduced({5}, DataType::i32, ReduceOp::land) == 1);
    CHECK(all_reduced({-7}, DataType::i32, ReduceOp::avg) == -7);
}

TEST_CASE("trap: integer sums wrap in every algorithm") {
    CHECK(all_reduced({120, 100}, DataType::i8, ReduceOp::sum) == -36);
    CHECK(all_reduced({200, 100, 50}, DataType::u8, ReduceOp::sum) == 94);
    CHECK(all_reduced({2147483647, 1}, DataType::i32, ReduceOp::sum) == -2147483648.0);
    CHECK(all_reduced({4294967295, 2}, DataType::u32, ReduceOp::sum) == 1);
}

TEST_CASE("trap: avg divides by the ranks, once, and integers truncate toward zero") {
    CHECK(all_reduced({-3, -4}, DataType::i32, ReduceOp::avg) == -3);
    CHECK(all_reduced({3, 4}, DataType::i8, ReduceOp::avg) == 3);
    CHECK(all_reduced({1, 1, 0}, DataType::u64, ReduceOp::avg) == 0);
    CHECK(all_reduced({1, 2, 4, 8}, DataType::f32, ReduceOp::avg) == 3.75);
    // The partial sums do not fit the type, the result does.
    CHECK(all_reduced({448, 448, 448, 448}, DataType::f8e4m3, ReduceOp::avg) == 448);
    CHECK(all_reduced({57344, 57344, 57344}, DataType::f8e5m2, ReduceOp::avg) == 57344);
    CHECK(all_reduced({65504, 65504, 65504}, DataType::f16, ReduceOp::avg) == 65504);
}

TEST_CASE("trap: sums of finite f8 values saturate") {
    CHECK(all_reduced({448, 18}, DataType::f8e4m3, ReduceOp::sum) == 448);
    CHECK(all_reduced({-448, -18}, DataType::f8e4m3, ReduceOp::sum) == -448);
    CHECK(all_reduced({57344, 4096}, DataType::f8e5m2, ReduceOp::sum) == 57344);
    CHECK(all_reduced({57344, 57344, 57344, 57344}, DataType::f8e5m2, ReduceOp::prod) == 57344);
}

TEST_CASE("trap: every element of an f8 reduction is written, at 64 and at odd counts") {
    for (const auto type : {DataType::f8e4m3, DataType::f8e5m2})
        for (const auto& algorithm : test::algorithms_for(CollectiveKind::all_reduce, 4, 0))
            for (const bool wide : {false, true}) {
                Interpreter interpreter = lowered(algorithm, codegen::ModePreference::staged, wide);
                for (const std::int64_t count : {64, 63, 65, 17, 1, 257})
                    for (const auto op : {ReduceOp::sum, ReduceOp::max, ReduceOp::prod})
                        check(interpreter, {count, type, op}, count % 3 == 0);
            }
}

TEST_CASE("trap: NaN does not vanish in max and min, wherever it stands") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const auto type :
         {DataType::f16, DataType::bf16, DataType::f32, DataType::f64, DataType::f8e4m3, DataType::f8e5m2})
        for (const auto op : {ReduceOp::max, ReduceOp::min, ReduceOp::sum, ReduceOp::prod})
            for (int at = 0; at < 4; ++at) {
                std::vector<double> values{1, 2, -1, 0.5};
                values[static_cast<std::size_t>(at)] = nan;
                CHECK(std::isnan(all_reduced(values, type, op)));
                if (op == ReduceOp::max)
                    CHECK(all_reduced(values, type, op, ir::NanMode::ignore) == (at == 1 ? 1 : 2));
            }
    CHECK(std::isnan(all_reduced({nan, nan}, DataType::f32, ReduceOp::max, ir::NanMode::ignore)));
    CHECK(std::signbit(all_reduced({0.0, -0.0}, DataType::f32, ReduceOp::min)));
    CHECK(!std::signbit(all_reduced({-0.0, 0.0}, DataType::f32, ReduceOp::max)));
}

TEST_CASE("trap: one program serves calls of changing size, type, operator and tiles") {
    Interpreter interpreter = lowered(test::ring_all_reduce(5));
    const std::array<std::int64_t, 9> counts{1000, 3, 0, 77, 1, 4096, 0, 5, 999};
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const DataType type = ir::all_data_types()[i];
        check(interpreter, {counts[i], type, i % 2 == 0 ? ReduceOp::sum : ReduceOp::max}, i % 3 == 0,
              {1 + static_cast<std::int64_t>(i) % 4});
    }
}

TEST_CASE("trap: a plan for other ranks is refused with both numbers") {
    Interpreter interpreter = lowered(test::ring_all_reduce(4));
    float one = 1, two = 0;
    CHECK(error_of([&] {
              interpreter.run({1}, std::vector<RankBuffers>{{&one, &two}});
          }) == "buffers of 1 ranks for a collective of 4");
}

TEST_CASE(
    "trap: replicas of an all-reduce are the same bits, and within the error bound, for random values") {
    for (const int ranks : {2, 3, 5, 8})
        for (const auto& algorithm : test::algorithms_for(CollectiveKind::all_reduce, ranks, 0))
            for (const bool wide : {false, true}) {
                Interpreter interpreter = lowered(algorithm, codegen::ModePreference::staged, wide);
                for (const auto& [type, op] : test::pairs_for(CollectiveKind::all_reduce)) {
                    if (!wide && ir::always_wide(op, type)) continue;
                    const CallArguments arguments{61, type, op};
                    const test::Buffers buffers(algorithm.collective, arguments, false, 9,
                                                test::Fill::random);
                    interpreter.run(arguments, buffers.pointers());
                    for (int r = 1; r < ranks; ++r)
                        CHECK(!compare(type, buffers.output(r), buffers.output(0), 61));
                    const ErrorReport report =
                        check_error_bound(algorithm.collective, arguments, buffers.pointers());
                    CHECK_MESSAGE(!report.mismatch, test::words(interpreter.program(), arguments, false, {})
                                                        << ": "
                                                        << (report.mismatch ? report.mismatch->words : ""));
                    CHECK(report.checked > 0);
                }
            }
}

TEST_CASE("the error bound rejects a result that lacks one contribution") {
    const ir::Collective c = test::collective(CollectiveKind::all_reduce, 4, 1);
    for (const auto type : {DataType::f16, DataType::f32, DataType::f64, DataType::i32}) {
        const CallArguments arguments{40, type, ReduceOp::sum};
        const test::Buffers buffers(c, arguments, false, 2, test::Fill::exact);
        runtime::reference(c, arguments, buffers.pointers());
        CHECK(!check_error_bound(c, arguments, buffers.pointers()).mismatch);
        std::vector<const void*> three{buffers.input(0), buffers.input(1), buffers.input(2)};
        ir::reduce_buffers(arguments.op, type, arguments.nan, three, buffers.output(2), 40);
        const auto report = check_error_bound(c, arguments, buffers.pointers());
        REQUIRE(report.mismatch);
        CHECK(report.mismatch->words.find("rank 2: element") == 0);
    }
}
