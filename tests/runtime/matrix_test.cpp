// Every collective x ranks x root x count x in place and out x (type, operator), over algorithms of several
// shapes lowered in every mode, executed by the interpreter and held against the reference bit for bit.
#include "support/collective_run.hpp"
#include "support/full.hpp"
#include "support/kind_algorithms.hpp"

#include <baton/codegen/lower.hpp>
#include <baton/ir/verify.hpp>
#include <baton/synth/fixed_patterns.hpp>

#include <doctest/doctest.h>
#include <array>

using namespace baton;
using namespace baton::runtime;

namespace {

constexpr std::array kRanks{1, 2, 3, 4, 5, 7, 8, 12, 16};

/// One algorithm lowered in every way that a pair may need.
struct Lowered {
    std::vector<Interpreter> modes;  // staged, put, get
    std::vector<Interpreter> wide;   // staged, reducing kinds only
};

Lowered lower_all(const ir::Algorithm& algorithm) {
    Lowered lowered;
    codegen::LowerOptions options;
    options.verify = true;
    for (const auto mode :
         {codegen::ModePreference::staged, codegen::ModePreference::put, codegen::ModePreference::get}) {
        options.mode = mode;
        lowered.modes.emplace_back(codegen::lower(algorithm, options));
        options.verify = false;  // tests of lowering verify every mode; here data decides
    }
    if (ir::reduces(algorithm.collective.kind)) {
        options.mode = codegen::ModePreference::staged;
        options.wide = true;
        lowered.wide.emplace_back(codegen::lower(algorithm, options));
    }
    return lowered;
}

/// The small ones by hand, and every fixed pattern that serves.
std::vector<ir::Algorithm> all_algorithms(ir::CollectiveKind kind, int ranks, int root) {
    auto list = test::algorithms_for(kind, ranks, root);
    synth::PatternOptions options;
    options.collective.kind = kind;
    options.collective.ranks = ranks;
    options.collective.root = root;
    for (int r = 0; r < ranks; ++r)
        options.hosts.push_back(r * 3 / ranks);  // up to three hosts, not all alike
    for (const auto& pattern : synth::fixed_patterns())
        if (synth::serves(pattern.name, options)) list.push_back(synth::fixed_pattern(pattern.name, options));
    return list;
}

class Matrix {
public:
    explicit Matrix(ir::CollectiveKind kind) : kind_(kind), pairs_(test::pairs_for(kind)) {}

    void run() {
        for (const int ranks : kRanks) {
            const int roots = ir::has_root(kind_) ? ranks : 1;
            for (int root = 0; root < roots; ++root)
                for (const auto& algorithm : all_algorithms(kind_, ranks, root)) run(algorithm);
        }
        CHECK(failures_ == 0);
        MESSAGE(fmt::format("{}: {} runs of {} algorithms", to_string(kind_), runs_, algorithms_));
    }

private:
    void run(const ir::Algorithm& algorithm) {
        const int ranks = algorithm.collective.ranks;
        Lowered lowered = lower_all(algorithm);
        ++algorithms_;
        const std::array<std::int64_t, 5> counts{0, 1, 7, ranks - 1, 17 * algorithm.collective.chunks + 5};
        for (std::size_t p = 0; p < pairs_.size(); ++p) {
            const auto [type, op] = pairs_[p];
            for (std::size_t c = 0; c < counts.size(); ++c) {
                for (const bool in_place : {false, true}) {
                    // All counts at the last root; at the others one of five, another for each pair.
                    const bool edge = algorithm.collective.root == ranks - 1;
                    if (!test::full() && pairs_.size() > 20 && !edge &&
                        (p + static_cast<std::size_t>(algorithm.collective.root) + c) % counts.size() > 0)
                        continue;
                    const std::size_t way =
                        p + static_cast<std::size_t>(algorithm.collective.root) + c + (in_place ? 1 : 0);
                    const bool wide = ir::always_wide(op, type) || (!lowered.wide.empty() && way % 7 == 0);
                    one(wide ? lowered.wide[0] : lowered.modes[way % lowered.modes.size()],
                        {counts[c], type, op}, in_place,
                        {1 + static_cast<std::int64_t>(way / 3 % 3), 0, way % 4 == 0 ? way + 1 : 0});
                }
            }
        }
    }

    void one(Interpreter& interpreter, const CallArguments& arguments, bool in_place,
             const InterpretOptions& options) {
        ++runs_;
        const std::string fault =
            test::faults_of(interpreter, arguments, in_place, options, static_cast<std::uint64_t>(runs_));
        if (!fault.empty() && ++failures_ <= 10)
            FAIL_CHECK(test::words(interpreter.program(), arguments, in_place, options) << ": " << fault);
    }

    ir::CollectiveKind kind_;
    std::vector<std::pair<ir::DataType, ir::ReduceOp>> pairs_;
    std::int64_t runs_ = 0, failures_ = 0, algorithms_ = 0;
};

}  // namespace

TEST_CASE("matrix: broadcast") { Matrix(ir::CollectiveKind::broadcast).run(); }
TEST_CASE("matrix: scatter") { Matrix(ir::CollectiveKind::scatter).run(); }
TEST_CASE("matrix: gather") { Matrix(ir::CollectiveKind::gather).run(); }
TEST_CASE("matrix: all_gather") { Matrix(ir::CollectiveKind::all_gather).run(); }
TEST_CASE("matrix: reduce") { Matrix(ir::CollectiveKind::reduce).run(); }
TEST_CASE("matrix: reduce_scatter") { Matrix(ir::CollectiveKind::reduce_scatter).run(); }
TEST_CASE("matrix: all_reduce") { Matrix(ir::CollectiveKind::all_reduce).run(); }
TEST_CASE("matrix: all_to_all") { Matrix(ir::CollectiveKind::all_to_all).run(); }
TEST_CASE("matrix: send_recv") { Matrix(ir::CollectiveKind::send_recv).run(); }

TEST_CASE("matrix: a million elements and three, in tiles that do not divide them") {
    struct Case {
        ir::CollectiveKind kind;
        int ranks;
        ir::DataType type;
        ir::ReduceOp op;
    };
    using enum ir::CollectiveKind;
    std::vector<Case> cases{{all_reduce, 3, ir::DataType::f32, ir::ReduceOp::sum},
                            {reduce_scatter, 3, ir::DataType::i64, ir::ReduceOp::max},
                            {all_gather, 5, ir::DataType::u8, ir::ReduceOp::sum},
                            {broadcast, 7, ir::DataType::i8, ir::ReduceOp::sum},
                            {all_to_all, 3, ir::DataType::f64, ir::ReduceOp::sum},
                            {reduce, 4, ir::DataType::i32, ir::ReduceOp::avg}};
    if (test::full()) {
        for (const auto kind : ir::standard_kinds())
            for (const int ranks : {2, 5, 8, 12})
                cases.push_back({kind, ranks, ir::DataType::f8e4m3, ir::ReduceOp::sum});
    }
    for (const auto& each : cases) {
        const auto algorithms = test::algorithms_for(each.kind, each.ranks, each.ranks - 1);
        Lowered lowered = lower_all(algorithms[0]);
        for (const bool in_place : {false, true}) {
            const InterpretOptions options{in_place ? 7 : 1};
            const CallArguments arguments{1000003, each.type, each.op};
            Interpreter& interpreter = lowered.modes[in_place ? 1 : 2];
            CHECK_MESSAGE(test::faults_of(interpreter, arguments, in_place, options) == "",
                          test::words(interpreter.program(), arguments, in_place, options));
        }
    }
}

TEST_CASE("what verification says about the order of a reduction holds on rounded data") {
    std::array<int, 4> seen{};
    for (const auto kind :
         {ir::CollectiveKind::all_reduce, ir::CollectiveKind::reduce, ir::CollectiveKind::reduce_scatter})
        for (const int ranks : {1, 2, 3, 4, 6, 8})
            for (const auto& algorithm : all_algorithms(kind, ranks, 0))
                for (const bool wide : {false, true}) {
                    codegen::LowerOptions options;
                    options.wide = wide;
                    Interpreter interpreter(codegen::lower(algorithm, options));
                    const ir::Order order = ir::verify(interpreter.program()).order;
                    ++seen[static_cast<std::size_t>(order)];
                    for (const auto type : {ir::DataType::f16, ir::DataType::f32, ir::DataType::f8e5m2}) {
                        const CallArguments arguments{150, type, ir::ReduceOp::sum};
                        const test::Buffers buffers(algorithm.collective, arguments, false, 4,
                                                    test::Fill::random);
                        interpreter.run(arguments, buffers.pointers(), {2});
                        const std::string words = test::words(interpreter.program(), arguments, false, {2});
                        if (order >= ir::Order::replicas_equal && kind == ir::CollectiveKind::all_reduce)
                            for (int r = 1; r < ranks; ++r)
                                CHECK_MESSAGE(!compare(type, buffers.output(r), buffers.output(0), 150),
                                              words);
                        if (order == ir::Order::rank_order) {
                            const test::Buffers expected(algorithm.collective, arguments, false, 4,
                                                         test::Fill::random);
                            runtime::reference(algorithm.collective, arguments, expected.pointers());
                            CHECK_MESSAGE(buffers.faults(expected) == "", words);
                        }
                        // Another run, in another interleaving and with other tiles, gives the same bits.
                        const test::Buffers again(algorithm.collective, arguments, false, 4,
                                                  test::Fill::random);
                        interpreter.run(arguments, again.pointers(), {3, 0, 77});
                        CHECK_MESSAGE(again.faults(buffers) == "", words);
                    }
                }
    CHECK(seen[static_cast<std::size_t>(ir::Order::rank_order)] > 0);
    CHECK(seen[static_cast<std::size_t>(ir::Order::replicas_equal)] > 0);
}
