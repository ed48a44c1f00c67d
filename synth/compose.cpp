#include <baton/synth/compose.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/ir/transform.hpp>
#include <baton/synth/composer.hpp>
#include <baton/synth/fixed_patterns.hpp>
#include <baton/synth/forest.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

namespace baton::synth {
namespace {

using Kind = ir::CollectiveKind;
using topologies::Topology;

constexpr int kFewHosts = 16;       // all pairs of hosts
constexpr int kRingHosts = 64;      // rings take twice as many steps as hosts
constexpr int kHalvingHosts = 256;  // broadcast and reduce by halves
constexpr int kMostInside = 64;     // ranks of a host
constexpr int kDealtHosts = 32;     // from here on all_gather deals shards out
constexpr int kMostTornHosts = 64;  // up to here it tears steps

/// All-gathers inside a host, one per class of equal hosts.
struct Inside {
    std::vector<ir::Algorithm> of_class;
    std::string words;
};

class Composing {
public:
    Composing(const Topology& topology, const ir::Collective& collective, const ComposeOptions& options)
        : collective_(collective), options_(options) {
        if (!compose_serves(collective.kind))
            throw input_error(fmt::format("compose is not made for {}", to_string(collective.kind)));
        if (collective.group_count() != 1) throw input_error("compose serves one group of ranks at a time");
        std::vector<int> members;
        for (int p = 0; p < collective.group_size(); ++p) members.push_back(collective.rank_at(0, p));
        rails_ = host_rails(topology, members);
        if (rails_.locals() > kMostInside)
            throw input_error(fmt::format("compose takes hosts of up to {} ranks; these have {}", kMostInside,
                                          rails_.locals()));
        for (int c = 0; c < rails_.classes(); ++c) {
            const auto first = std::find(rails_.class_of.begin(), rails_.class_of.end(), c);
            hosts_.push_back(host_alone(topology, rails_.ranks[at(first - rails_.class_of.begin())]));
        }
    }

    void run() {
        const Kind made = collective_.kind == Kind::reduce           ? Kind::broadcast
                          : collective_.kind == Kind::reduce_scatter ? Kind::all_gather
                                                                     : collective_.kind;
        refuse_large(made);
        bool any = false;
        std::string first_inside;
        for (const std::int64_t trees : {1, 64}) {
            std::optional<Inside> inside = trees_inside(trees);
            if (!inside || inside->words == first_inside) continue;
            const std::vector<Between> ways = ways_between(made);
            // The way of least volume with every inside; the others only with the simplest.
            for (std::size_t w = 0; w < ways.size() && (w == 0 || first_inside.empty()); ++w)
                any = offer(made, *inside, ways[w]) || any;
            first_inside = inside->words;
        }
        if (!any) throw input_error(fmt::format("more than {} steps", options_.step_limit));
    }

private:
    int hosts() const { return rails_.hosts(); }
    int locals() const { return rails_.locals(); }

    /// Fewest steps that any composition has; refuses before anything is made.
    void refuse_large(Kind made) const {
        const std::int64_t n = collective_.group_size();
        std::int64_t steps = n * (locals() - 1 + std::bit_width(static_cast<unsigned>(hosts() - 1)));
        if (made == Kind::all_to_all) steps = n * (n - hosts());
        if (steps > options_.step_limit)
            throw input_error(
                fmt::format("at least {} steps, more than the limit of {}", steps, options_.step_limit));
    }

    std::optional<Inside> trees_inside(std::int64_t trees) const {
        ir::Collective c;
        c.kind = Kind::all_gather;
        c.ranks = locals();
        Inside inside;
        std::int64_t most = 0;
        for (const Topology& host : hosts_) {
            ForestAlgorithm made = forest(host, c, TreeLimits(trees));
            most = std::max(most, made.trees_per_root);
            // Chunks are shared by all hosts: one division for all.
            if (!inside.of_class.empty() &&
                (made.algorithm.collective.chunks != inside.of_class[0].collective.chunks ||
                 made.algorithm.collective.weights != inside.of_class[0].collective.weights))
                return std::nullopt;
            inside.of_class.push_back(std::move(made.algorithm));
        }
        inside.words = fmt::format("{} tree{} inside", most, most == 1 ? "" : "s");
        return inside;
    }

    struct Between {
        std::string pattern;
        bool dealt = false;
    };

    /// Ways between hosts, the one of least volume first.
    std::vector<Between> ways_between(Kind made) const {
        std::vector<Between> ways;
        const int h = hosts();
        // Exchanges in pairs leave no end of a message waiting; Bruck's serve every number of hosts.
        const bool pairs = std::has_single_bit(static_cast<unsigned>(h));
        switch (made) {
            case Kind::all_reduce:
                ways = {{pairs ? "rabenseifner" : "bruck"}, {"recursive_doubling"}};
                if (h <= kFewHosts) ways.push_back({"all_pairs"});
                if (h > 2 && h <= kRingHosts) ways.push_back({"ring"});
                break;
            case Kind::all_gather: {
                const std::string least = pairs ? "recursive_doubling" : "bruck";
                if (h >= kDealtHosts) ways.push_back({least, true});
                if (h > kMostTornHosts) break;
                ways.push_back({least});
                if (h > 2 && h <= kFewHosts) ways.push_back({"all_pairs"});
                if (h > 2 && h <= kRingHosts) ways.push_back({"ring"});
                break;
            }
            case Kind::broadcast:
                if (h > 2) ways.push_back({"double_binary_tree"});
                // Its many steps all differ: with many hosts simulation alone would take seconds.
                if (h <= kHalvingHosts) ways.push_back({"recursive_halving"});
                ways.push_back({"binomial"});
                if (h > 3 && h <= kRingHosts) ways.push_back({"chain"});
                break;
            default: ways = {{"direct"}}; break;
        }
        return ways;
    }

    bool offer(Kind made, const Inside& inside, const Between& between) {
        ComposerInput input{collective_,        made, rails_, inside.of_class, between.pattern, between.dealt,
                            options_.step_limit};
        std::optional<ir::Algorithm> whole = composed(input);
        if (!whole) return false;
        if (made != collective_.kind) whole = ir::reverse(*whole);
        whole->name = fmt::format("composed {}", to_string(collective_.kind));
        options_.take({std::move(*whole), fmt::format("{}, {} between{}", inside.words, between.pattern,
                                                      between.dealt ? " on dealt shards" : "")});
        return true;
    }

    const ir::Collective& collective_;
    const ComposeOptions& options_;
    HostRails rails_;
    std::vector<Topology> hosts_;  // one of each class
};

}  // namespace

bool compose_serves(Kind kind) {
    return kind == Kind::all_reduce || kind == Kind::all_gather || kind == Kind::reduce_scatter ||
           kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::all_to_all;
}

void compose(const Topology& topology, const ir::Collective& collective, const ComposeOptions& options) {
    Composing(topology, collective, options).run();
}

}  // namespace baton::synth
