// Rounds and volumes of the fixed patterns against the textbook.
#include <baton/synth/fixed_patterns.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

using namespace baton;
using namespace baton::synth;
using Kind = ir::CollectiveKind;

namespace {

/// Of one algorithm, in shards for kinds with shards, else in parts of a buffer: numerators over `chunks`.
struct Costs {
    std::int64_t rounds = 0;  ///< messages on the longest chain of values
    std::int64_t peers = 0;  ///< ranks that the busiest rank sends to: rounds where it sends to one at a time
    std::int64_t sent = 0;   ///< chunks that the busiest rank sends
    std::int64_t received = 0;  ///< chunks that the busiest rank receives
    std::int64_t total = 0;     ///< chunks sent by all
    std::int64_t chunks = 1;
};

Costs costs(const std::string& pattern, Kind kind, int ranks, int root = 0) {
    PatternOptions options;
    options.collective.kind = kind;
    options.collective.ranks = ranks;
    options.collective.root = root;
    const auto algorithm = fixed_pattern(pattern, options);
    Costs result;
    result.chunks = algorithm.collective.chunks;
    std::map<std::tuple<int, ir::Buffer, std::int64_t>, std::int64_t> depth;  // of the value in a place
    std::vector<std::int64_t> sent(static_cast<std::size_t>(ranks)), received(sent);
    std::vector<std::set<int>> peers(static_cast<std::size_t>(ranks));
    const auto steps = ir::expand(algorithm);
    for (std::size_t i = 0; i < steps.size();) {
        std::size_t end = i + 1;  // a par block reads before it writes
        while (steps[i].in_par && end < steps.size() && steps[end].par) ++end;
        const auto before = depth;
        for (; i < end; ++i) {
            const auto& s = steps[i];
            for (std::int32_t k = 0; k < s.chunks; ++k) {
                const auto from = before.find({s.src_rank, s.src_buffer, s.src_index + k});
                const std::int64_t arrives = (from == before.end() ? 0 : from->second) + s.crosses();
                auto& to = depth[{s.dst_rank, s.dst_buffer, s.dst_index + k}];
                to = s.reducing() ? std::max(to, arrives) : arrives;
                result.rounds = std::max(result.rounds, to);
            }
            if (!s.crosses()) continue;
            sent[static_cast<std::size_t>(s.src_rank)] += s.chunks;
            received[static_cast<std::size_t>(s.dst_rank)] += s.chunks;
            peers[static_cast<std::size_t>(s.src_rank)].insert(s.dst_rank);
            result.total += s.chunks;
        }
    }
    result.sent = *std::max_element(sent.begin(), sent.end());
    result.received = *std::max_element(received.begin(), received.end());
    for (const auto& each : peers)
        result.peers = std::max(result.peers, static_cast<std::int64_t>(each.size()));
    return result;
}

std::int64_t ceil_log2(int n) { return n <= 1 ? 0 : std::bit_width(static_cast<unsigned>(n - 1)); }
std::int64_t floor_log2(int n) { return std::bit_width(static_cast<unsigned>(n)) - 1; }

const std::vector<int> kRanks = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33};

}  // namespace

TEST_CASE("rings: N-1 rounds of one block") {
    for (const int n : kRanks) {
        CAPTURE(n);
        for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter}) {
            const Costs c = costs("ring", kind, n);
            CHECK(c.rounds == n - 1);
            CHECK(c.sent == n - 1);
            CHECK(c.received == n - 1);
        }
        const Costs all_reduce = costs("ring", Kind::all_reduce, n);
        CHECK(all_reduce.rounds == 2 * (n - 1));
        CHECK(all_reduce.chunks == n);
        CHECK(all_reduce.sent == 2 * (n - 1));  // of N chunks: 2 (N-1)/N of the buffer
        for (const Kind kind : {Kind::broadcast, Kind::reduce}) {
            const Costs c = costs("ring", kind, n, n / 2);
            CHECK(c.rounds == n - 1);
            CHECK(c.sent == std::min(1, n - 1));
            CHECK(c.total == n - 1);
        }
        for (const Kind kind : {Kind::gather, Kind::scatter})
            CHECK(costs("ring", kind, n, n - 1).rounds == n / 2);
        const Costs exchange = costs("ring", Kind::all_to_all, n);
        CHECK(exchange.rounds == n / 2);
        std::int64_t hops = 0;  // every shard the shorter way
        for (int d = 1; d < n; ++d) hops += std::min(d, n - d);
        CHECK(exchange.total == n * hops);
        CHECK(exchange.sent == hops);
    }
}

TEST_CASE("chains: as far as the farther end") {
    for (const int n : kRanks) {
        for (int root = 0; root < n; root += 3) {
            CAPTURE(n);
            CAPTURE(root);
            const std::int64_t farther = std::max(root, n - 1 - root);
            for (const Kind kind : {Kind::broadcast, Kind::reduce, Kind::gather, Kind::scatter})
                CHECK(costs("chain", kind, n, root).rounds == farther);
            CHECK(costs("chain", Kind::broadcast, n, root).total == n - 1);
        }
        for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all})
            CHECK(costs("chain", kind, n).rounds == n - 1);
        CHECK(costs("chain", Kind::all_reduce, n).rounds == 2 * (n / 2));
        CHECK(costs("chain", Kind::all_reduce, n).total == 2 * (n - 1));
    }
}

TEST_CASE("binomial trees: ceil(log2 N) rounds and no value twice") {
    for (const int n : kRanks) {
        for (const int root : {0, n / 3, n - 1}) {
            CAPTURE(n);
            CAPTURE(root);
            for (const Kind kind : {Kind::broadcast, Kind::reduce}) {
                const Costs c = costs("binomial", kind, n, root);
                CHECK(c.rounds == floor_log2(n));  // a hop for each bit of the distance
                CHECK(c.total == n - 1);
                CHECK((kind == Kind::broadcast ? c.peers : c.received) == ceil_log2(n));
            }
            CHECK(costs("binomial", Kind::scatter, n, root).rounds == floor_log2(n));
            CHECK(costs("binomial", Kind::scatter, n, root).sent == n - 1);
            CHECK(costs("binomial", Kind::gather, n, root).rounds == floor_log2(n));
            CHECK(costs("binomial", Kind::gather, n, root).received == n - 1);
        }
        CHECK(costs("binomial", Kind::all_reduce, n).rounds == 2 * floor_log2(n));
    }
}

TEST_CASE(
    "double binary trees: logarithmic depth, and every rank sends and receives the buffer once a phase") {
    for (const int n : kRanks) {
        for (const int root : {0, n / 2}) {
            CAPTURE(n);
            CAPTURE(root);
            const Costs broadcast = costs("double_binary_tree", Kind::broadcast, n, root);
            CHECK(broadcast.chunks == 2);
            CHECK(broadcast.rounds <= ceil_log2(n));
            CHECK(broadcast.sent <= 2);
            CHECK(broadcast.received == (n > 1 ? 2 : 0));
            CHECK(broadcast.total == 2 * (n - 1));
            const Costs reduce = costs("double_binary_tree", Kind::reduce, n, root);
            CHECK(reduce.rounds == broadcast.rounds);
            CHECK(reduce.received <= 2);
            CHECK(reduce.sent == (n > 1 ? 2 : 0));
        }
        const Costs all_reduce = costs("double_binary_tree", Kind::all_reduce, n);
        CHECK(all_reduce.rounds == 2 * costs("double_binary_tree", Kind::broadcast, n).rounds);
        CHECK(all_reduce.sent <= 4);
    }
}

TEST_CASE(
    "recursive doubling, halving and Rabenseifner: log2 P rounds a phase, and two for what is beyond a power "
    "of two") {
    for (const int n : kRanks) {
        CAPTURE(n);
        const std::int64_t rounds = floor_log2(n), p = std::int64_t{1} << rounds, extra = n > p ? 1 : 0;
        const Costs doubling = costs("recursive_doubling", Kind::all_reduce, n);
        CHECK(doubling.rounds <= rounds + 2 * extra);
        CHECK(doubling.sent == rounds + extra);
        CHECK(doubling.peers == rounds + extra);
        CHECK(costs("recursive_doubling", Kind::all_gather, n).rounds <= rounds + 2 * extra);
        const Costs halving = costs("recursive_halving", Kind::reduce_scatter, n);
        CHECK(halving.rounds <= rounds + 2 * extra);
        const Costs rabenseifner = costs("rabenseifner", Kind::all_reduce, n);
        CHECK(rabenseifner.rounds == 2 * rounds + 2 * extra);
        CHECK(rabenseifner.chunks == p);
        CHECK(rabenseifner.sent ==
              2 * (p - 1) + extra * p);  // 2 (P-1)/P of the buffer, and once for the partner
        CHECK(costs("rabenseifner", Kind::reduce, n, n / 2).rounds == 2 * rounds + extra);
        const Costs broadcast = costs("recursive_halving", Kind::broadcast, n, n / 2);
        CHECK(broadcast.rounds <= 2 * rounds + extra);
        CHECK(halving.peers == rounds + extra);
        CHECK(broadcast.peers <= 2 * rounds + extra);
        CHECK(broadcast.total == p * rounds / 2 + (p - 1) * (p - 1) + (n - p) * p);
        if (extra) continue;
        CHECK(doubling.rounds == rounds);
        CHECK(halving.rounds == rounds);
        CHECK(costs("recursive_doubling", Kind::all_gather, n).sent == n - 1);
        CHECK(halving.sent == n - 1);
        CHECK(halving.received == n - 1);
    }
}

TEST_CASE("Bruck: ceil(log2 N) rounds for any N") {
    for (const int n : kRanks) {
        CAPTURE(n);
        for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter}) {
            const Costs c = costs("bruck", kind, n);
            CHECK(c.peers == ceil_log2(n));
            CHECK(c.rounds <= ceil_log2(n));
            CHECK(c.sent == n - 1);
            CHECK(c.received == n - 1);
        }
        const Costs all_reduce = costs("bruck", Kind::all_reduce, n);
        CHECK(all_reduce.rounds <= 2 * ceil_log2(n));
        CHECK(all_reduce.chunks == n);
        CHECK(all_reduce.sent == 2 * (n - 1));
        const Costs exchange = costs("bruck", Kind::all_to_all, n);
        std::int64_t bits = 0;  // shard j travels once for each bit of j
        for (int j = 1; j < n; ++j) bits += std::popcount(static_cast<unsigned>(j));
        CHECK(exchange.sent == bits);
        CHECK(exchange.peers == ceil_log2(n));
        CHECK(exchange.rounds == floor_log2(n));
        PatternOptions options;
        options.collective.kind = Kind::all_to_all;
        options.collective.ranks = n;
        std::int64_t messages = 0;
        for (const auto& step : ir::expand(fixed_pattern("bruck", options))) messages += step.crosses();
        CHECK(messages == n * ceil_log2(n));
    }
}

TEST_CASE("all pairs and direct: one round, or two of least volume") {
    for (const int n : kRanks) {
        CAPTURE(n);
        for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce}) {
            const Costs c = costs("all_pairs", kind, n);
            CHECK(c.rounds == std::min(1, n - 1));
            CHECK(c.sent == n - 1);
        }
        for (const Kind kind : {Kind::broadcast, Kind::reduce, Kind::all_reduce}) {
            const Costs c = costs("all_pairs_two_shot", kind, n, kind == Kind::all_reduce ? 0 : n / 2);
            CHECK(c.rounds <= 2);
            CHECK(c.chunks == n);
            if (kind == Kind::all_reduce) CHECK(c.sent == 2 * (n - 1));
            CHECK(c.total <= 2 * n * (n - 1));
        }
        for (const Kind kind :
             {Kind::broadcast, Kind::reduce, Kind::gather, Kind::scatter, Kind::all_to_all}) {
            const Costs c = costs("direct", kind, n, kind == Kind::all_to_all ? 0 : n - 1);
            CHECK(c.rounds == std::min(1, n - 1));
            CHECK(c.total == (kind == Kind::all_to_all ? n * (n - 1) : n - 1));
        }
    }
}
