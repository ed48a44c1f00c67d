// Relations between collectives, on data: over shortest-path algorithms of random machines (one-way, unequal
// and missing links, hosts, switches), over what synthesis makes for them, and over fixed patterns in random
// rank orders.
#include "support/collective_run.hpp"
#include "support/full.hpp"
#include "support/random_topology.hpp"
#include "support/tree_algorithms.hpp"

#include <baton/codegen/lower.hpp>
#include <baton/synth/candidates.hpp>
#include <baton/synth/fixed_patterns.hpp>

#include <doctest/doctest.h>
#include <numeric>

using namespace baton;
using namespace baton::runtime;
using ir::CollectiveKind;
using enum ir::CollectiveKind;

namespace {

using Data = std::vector<std::vector<char>>;  // [rank]

/// A random machine, and what runs on it: every choice follows from the seed.
class World {
public:
    explicit World(std::uint64_t seed) : dice_(seed), seed_(seed) {
        routed_ = seed % 3 != 0;
        topology_ = test::random_topology(seed, {1, 9, routed_});
        graph_ = std::make_unique<test::RankGraph>(topology_);
        const auto& ops = ir::all_reduce_ops();
        arguments_.op = ops[static_cast<std::size_t>(dice_.between(0, static_cast<int>(ops.size()) - 1))];
        const auto types = ir::valid_types(arguments_.op);
        arguments_.type =
            types[static_cast<std::size_t>(dice_.between(0, static_cast<int>(types.size()) - 1))];
        constexpr int kCounts[] = {0, 1, 2, 5, 16, 33, 100};
        count_ = kCounts[dice_.between(0, 6)];
        root_ = dice_.between(0, ranks() - 1);
        // avg divides once; two steps of a relation would divide where one does.
        if (arguments_.op == ir::ReduceOp::avg) arguments_.op = ir::ReduceOp::sum;
    }

    int ranks() const { return graph_->ranks(); }
    int root() const { return root_; }
    std::int64_t count() const { return count_; }
    const CallArguments& arguments() const { return arguments_; }
    const test::RankGraph& graph() const { return *graph_; }
    bool usable() const { return graph_->strongly_connected(); }

    /// Random inputs of `elements` elements a rank.
    Data inputs(std::int64_t elements) {
        Data data;
        for (int r = 0; r < ranks(); ++r) {
            data.emplace_back(static_cast<std::size_t>(elements * width()));
            fill_exact(arguments_, ranks(), r, seed_, data.back().data(), elements);
        }
        return data;
    }

    /// Runs a kind on the inputs with some algorithm, in some mode, tiles, interleaving and placement. What
    /// the collective does not write is empty.
    Data run(CollectiveKind kind, const Data& inputs, std::int64_t count) {
        const ir::Algorithm algorithm = pick(kind);
        codegen::LowerOptions lowering;
        lowering.mode = static_cast<codegen::ModePreference>(dice_.between(0, 3));
        lowering.threadblocks = dice_.between(1, 8);
        lowering.wide = dice_.chance(20);
        Interpreter interpreter(codegen::lower(algorithm, lowering));
        CallArguments arguments = arguments_;
        arguments.count = count;
        const test::Buffers buffers(algorithm.collective, arguments, dice_.chance(50));
        Data outputs(inputs.size());
        for (int r = 0; r < ranks(); ++r) {
            const auto bytes =
                buffer_bytes(algorithm.collective, r, ir::Buffer::input, count, arguments.type);
            if (bytes > 0) std::copy_n(inputs[static_cast<std::size_t>(r)].data(), bytes, buffers.input(r));
        }
        interpreter.run(arguments, buffers.pointers(),
                        {dice_.between(1, 4), 0, dice_.chance(50) ? seed_ + 1 : 0});
        for (int r = 0; r < ranks(); ++r)
            outputs[static_cast<std::size_t>(r)].assign(
                buffers.output(r), buffers.output(r) + buffers.output_elements(r) * width());
        log_ += fmt::format("{} of {}; ", algorithm.name, count);
        return outputs;
    }

    std::string words() const {
        return fmt::format("seed {}: {} ranks, root {}, {} {}: {}", seed_, ranks(), root_,
                           to_string(arguments_.type), to_string(arguments_.op), log_);
    }

private:
    std::int64_t width() const { return ir::size_of(arguments_.type); }

    ir::Algorithm pick(CollectiveKind kind) {
        std::vector<std::string> names;
        synth::PatternOptions options;
        options.collective.kind = kind;
        options.collective.ranks = ranks();
        options.collective.root = root_;
        options.hosts = topology_.rank_hosts();
        options.rank_order.resize(static_cast<std::size_t>(ranks()));
        std::iota(options.rank_order.begin(), options.rank_order.end(), 0);
        for (std::size_t i = options.rank_order.size(); i > 1; --i)
            std::swap(
                options.rank_order[i - 1],
                options.rank_order[static_cast<std::size_t>(dice_.between(0, static_cast<int>(i) - 1))]);
        for (const auto& pattern : synth::fixed_patterns())
            if (synth::serves(pattern.name, options)) names.push_back(pattern.name);
        const int choice = dice_.between(0, 2);
        if (choice == 0) return test::tree_algorithm(*graph_, kind, root_, dice_.between(1, 3));
        if (choice == 1 && routed_) {
            synth::SynthesisOptions synthesis;
            synthesis.sizes = {Bytes{1 << 20}};
            const auto made = synth::make_candidates(topology_, options.collective, synthesis).candidates;
            if (!made.empty())
                return *made[static_cast<std::size_t>(dice_.between(0, static_cast<int>(made.size()) - 1))]
                            .algorithm;
        }
        return synth::fixed_pattern(
            names[static_cast<std::size_t>(dice_.between(0, static_cast<int>(names.size()) - 1))], options);
    }

    test::detail::Dice dice_;
    std::uint64_t seed_;
    topologies::Topology topology_;
    std::unique_ptr<test::RankGraph> graph_;
    CallArguments arguments_;
    std::int64_t count_ = 0;
    int root_ = 0;
    bool routed_ = true;  // a route between every two ranks, without relays
    std::string log_;
};

/// Calls `check(world)` for many seeds.
template <class Check>
void for_worlds(const Check& check) {
    const std::uint64_t seeds = test::full() ? 3000 : 400;
    int used = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        World world(seed);
        if (!world.usable()) continue;
        ++used;
        check(world);
    }
    CHECK(used > static_cast<int>(seeds) / 2);
}

}  // namespace

TEST_CASE("relation: all_reduce is reduce then broadcast, and reduce_scatter then all_gather") {
    for_worlds([](World& world) {
        const std::int64_t count = world.count(), all = count * world.ranks();
        const Data inputs = world.inputs(all);
        const Data result = world.run(all_reduce, inputs, all);
        CHECK_MESSAGE(world.run(broadcast, world.run(reduce, inputs, all), all) == result, world.words());
        CHECK_MESSAGE(world.run(all_gather, world.run(reduce_scatter, inputs, count), count) == result,
                      world.words());
    });
}

TEST_CASE("relation: all_gather is gather then broadcast") {
    for_worlds([](World& world) {
        const std::int64_t count = world.count();
        const Data inputs = world.inputs(count);
        const Data result = world.run(all_gather, inputs, count);
        CHECK_MESSAGE(world.run(broadcast, world.run(gather, inputs, count), count * world.ranks()) == result,
                      world.words());
    });
}

TEST_CASE("relation: reduce_scatter is reduce then scatter") {
    for_worlds([](World& world) {
        const std::int64_t count = world.count(), all = count * world.ranks();
        const Data inputs = world.inputs(all);
        const Data result = world.run(reduce_scatter, inputs, count);
        CHECK_MESSAGE(world.run(scatter, world.run(reduce, inputs, all), count) == result, world.words());
    });
}

TEST_CASE("relation: scatter and gather are inverse") {
    for_worlds([](World& world) {
        const std::int64_t count = world.count();
        const Data inputs = world.inputs(count);
        CHECK_MESSAGE(world.run(scatter, world.run(gather, inputs, count), count) == inputs, world.words());
        const Data whole = world.inputs(count * world.ranks());
        const auto root = static_cast<std::size_t>(world.root());
        CHECK_MESSAGE(world.run(gather, world.run(scatter, whole, count), count)[root] == whole[root],
                      world.words());
    });
}

TEST_CASE("relation: all_to_all twice is the identity") {
    for_worlds([](World& world) {
        const std::int64_t count = world.count();
        const Data inputs = world.inputs(count * world.ranks());
        CHECK_MESSAGE(world.run(all_to_all, world.run(all_to_all, inputs, count), count) == inputs,
                      world.words());
    });
}

TEST_CASE("relation: an all_gather reversed, copies for reductions, is a reduce_scatter") {
    for_worlds([](World& world) {
        const ir::Algorithm forward = test::tree_algorithm(world.graph(), all_gather, 0, 2);
        Interpreter interpreter(codegen::lower(test::reversed_all_gather(forward)));
        CallArguments arguments = world.arguments();
        arguments.count = world.count();
        CHECK_MESSAGE(test::faults_of(interpreter, arguments, false) == "", world.words());
    });
}

TEST_CASE("shortest-path algorithms of random machines give the reference result for every kind") {
    for_worlds([](World& world) {
        for (const auto kind : ir::standard_kinds()) {
            Interpreter interpreter(
                codegen::lower(test::tree_algorithm(world.graph(), kind, world.root(), 2)));
            CallArguments arguments = world.arguments();
            arguments.count = world.count();
            for (const bool in_place : {false, true})
                CHECK_MESSAGE(test::faults_of(interpreter, arguments, in_place, {2}) == "",
                              test::words(interpreter.program(), arguments, in_place, {2})
                                  << ", " << world.words());
        }
    });
}

TEST_CASE("everything that synthesis makes for random machines gives the reference result") {
    const std::uint64_t seeds = test::full() ? 1000 : 60;
    std::int64_t runs = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const auto topology = test::random_topology(seed, {1, 10, true});
        test::detail::Dice dice(seed);
        for (const auto kind : ir::standard_kinds()) {
            ir::Collective c;
            c.kind = kind;
            c.ranks = topology.rank_count();
            c.root = dice.between(0, c.ranks - 1);
            synth::SynthesisOptions options;
            options.sizes = {Bytes{1 << 20}};
            const auto pairs = test::pairs_for(kind);
            for (const auto& candidate : synth::make_candidates(topology, c, options).candidates) {
                codegen::LowerOptions lowering;
                lowering.mode = static_cast<codegen::ModePreference>(dice.between(0, 3));
                lowering.wide = true;
                Interpreter interpreter(codegen::lower(*candidate.algorithm, lowering));
                for (const bool in_place : {false, true}) {
                    const auto [type, op] =
                        pairs[static_cast<std::size_t>(dice.between(0, static_cast<int>(pairs.size()) - 1))];
                    const CallArguments arguments{dice.between(0, 300), type, op};
                    const InterpretOptions how{dice.between(1, 4), 0, dice.chance(50) ? seed : 0};
                    CHECK_MESSAGE(test::faults_of(interpreter, arguments, in_place, how) == "",
                                  "seed " << seed << ", " << candidate.label() << ": "
                                          << test::words(interpreter.program(), arguments, in_place, how));
                    ++runs;
                }
            }
        }
    }
    CHECK(runs > static_cast<std::int64_t>(seeds) * 9);
}
