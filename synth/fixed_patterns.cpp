#include <baton/synth/fixed_patterns.hpp>

#include <baton/base/error.hpp>
#include <baton/synth/embed.hpp>
#include <baton/synth/patterns/family.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <numeric>
#include <optional>

namespace baton::synth {
namespace {

using patterns::Entry;
using patterns::Family;

const std::vector<Family>& families() {
    static const std::vector<Family> list = {
        patterns::ring(),
        patterns::chain(),
        patterns::double_binary_tree(),
        patterns::binomial(),
        patterns::recursive_doubling(),
        patterns::recursive_halving(),
        patterns::rabenseifner(),
        patterns::bruck(),
        patterns::all_pairs(),
        patterns::all_pairs_two_shot(),
        patterns::direct(),
        patterns::hierarchical(),
        patterns::multi_ring(),
    };
    return list;
}

const Family& find_family(const std::string& name) {
    std::string known;
    for (const Family& family : families()) {
        if (family.info.name == name) return family;
        known += (known.empty() ? "" : ", ") + family.info.name;
    }
    throw input_error(fmt::format("unknown pattern \"{}\"", name.substr(0, 60)), {}, "known: " + known);
}

const Entry* find_entry(const Family& family, ir::CollectiveKind kind) {
    for (const Entry& entry : family.entries)
        if (entry.kind == kind) return &entry;
    return nullptr;
}

std::string kinds_served(const Family& family) {
    std::string text;
    for (const Entry& entry : family.entries)
        text += (text.empty() ? "" : ", ") + std::string(to_string(entry.kind));
    return text;
}

void check_order(const ir::Collective& c, const std::vector<int>& rank_order) {
    if (rank_order.empty()) return;
    std::vector<bool> seen(static_cast<std::size_t>(c.ranks));
    for (const int rank : rank_order) {
        if (rank < 0 || rank >= c.ranks)
            throw input_error(
                fmt::format("the rank order names rank {}, but there are {} ranks", rank, c.ranks));
        if (seen[static_cast<std::size_t>(rank)])
            throw input_error(fmt::format("the rank order names rank {} twice", rank));
        seen[static_cast<std::size_t>(rank)] = true;
    }
    for (int g = 0; g < c.group_count(); ++g)
        for (int p = 0; p < c.group_size(g); ++p)
            if (!seen[static_cast<std::size_t>(c.rank_at(g, p))])
                throw input_error(fmt::format("the rank order does not name rank {}", c.rank_at(g, p)));
}

/// The options with chunks and weights at rest, checked; why they are not served, or "".
std::string refusal(const Family& family, PatternOptions& options) {
    auto& c = options.collective;
    c.chunks = 1;
    c.weights.clear();
    if (!ir::has_root(c.kind)) c.root = 0;
    if (c.kind != ir::CollectiveKind::send_recv) c.peer = -1;
    if (!find_entry(family, c.kind))
        return fmt::format("{} is not made for {}; it serves {}", family.info.name, to_string(c.kind),
                           kinds_served(family));
    c.check();
    check_order(c, options.rank_order);
    for (const auto& ring : options.rings) check_order(c, ring.order);
    return family.refuse ? family.refuse(options) : std::string();
}

std::int64_t blocks_of(const Entry& entry, int ranks) {
    ir::Bindings bindings;
    bindings.values = {{"N", ranks}};
    return ir::Expression::parse(entry.blocks).evaluate(bindings);
}

/// Chunks that serve every group: the blocks of each when they agree, else a multiple of them where that is
/// small, else enough for nearly equal parts. True when they do not agree.
std::pair<std::int64_t, bool> chunks_for(const Entry& entry, const ir::Collective& c) {
    std::int64_t largest = 0, multiple = 1;
    bool agree = true;
    for (int g = 0; g < c.group_count(); ++g) {
        const std::int64_t blocks = blocks_of(entry, c.group_size(g));
        agree = agree && (g == 0 || blocks == largest);
        largest = std::max(largest, blocks);
        if (multiple <= (std::int64_t{1} << 24)) multiple = std::lcm(multiple, blocks);
    }
    if (agree) return {largest, false};
    return {std::min(multiple, 8 * largest), true};
}

ir::Algorithm write_canonical(const Family& family, const Entry& entry, const ir::Collective& collective,
                              bool parts) {
    ir::Algorithm algorithm;
    algorithm.name = fmt::format("{} {}", family.info.name, to_string(entry.kind));
    algorithm.collective = collective;
    TemplateWriter writer;
    if (entry.kind == ir::CollectiveKind::send_recv)
        writer.let("peer", collective.peer >= 0 ? fmt::format("{}", collective.peer) : "(root+1) mod N");
    const bool shards = ir::has_shards(entry.kind);
    const auto form = shards ? Blocks::Form::shards : parts ? Blocks::Form::parts : Blocks::Form::chunks;
    entry.write(writer, Blocks(form, shards ? "N" : entry.blocks));
    algorithm.body = writer.take();
    if (!parts && collective.groups.empty() && entry.blocks != "1")
        algorithm.chunks_expression = ir::Expression::parse(entry.blocks);
    return algorithm;
}

/// Whether a buffer has a place for every chunk of every shard.
bool holds_all_shards(ir::CollectiveKind kind, ir::Buffer buffer) {
    using K = ir::CollectiveKind;
    if (buffer == ir::Buffer::input)
        return kind == K::scatter || kind == K::reduce_scatter || kind == K::all_to_all;
    if (buffer == ir::Buffer::output)
        return kind == K::gather || kind == K::all_gather || kind == K::all_to_all;
    return false;
}

}  // namespace

std::int64_t patterns::natural_chunks(const std::string& name, ir::CollectiveKind kind, int ranks) {
    return blocks_of(*find_entry(find_family(name), kind), ranks);
}

ir::Algorithm patterns::with_chunks(const std::string& name, const ir::Collective& collective) {
    const Family& family = find_family(name);
    const Entry& entry = *find_entry(family, collective.kind);
    const bool parts = !ir::has_shards(entry.kind) && entry.blocks != "1" &&
                       blocks_of(entry, collective.ranks) != collective.chunks;
    return write_canonical(family, entry, collective, parts);
}

std::int64_t patterns::append_ordered(const std::string& name, const ir::Collective& whole, int group,
                                      const std::vector<int>& order, const Lane& lane,
                                      std::vector<ir::Step>& steps) {
    ir::Collective c = whole;
    c.groups.clear();
    c.weights.clear();
    c.ranks = whole.group_size(group);
    c.chunks = whole.chunks / lane.count;
    std::vector<int> place_of(order.size()), ranks;  // place in the order of each position
    for (std::size_t i = 0; i < order.size(); ++i) {
        place_of[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
        ranks.push_back(whole.rank_at(group, order[i]));
    }
    if (ir::has_root(c.kind)) c.root = place_of[static_cast<std::size_t>(whole.root)];
    if (c.kind == ir::CollectiveKind::send_recv)
        c.peer = place_of[static_cast<std::size_t>(whole.receiver(group))];
    const ir::Algorithm part = with_chunks(name, c);
    const std::int64_t count = part.step_count() + static_cast<std::int64_t>(steps.size());
    if (count > kMostExplicitSteps)
        throw input_error(fmt::format("{} takes {} explicit steps or more here; at most {} are written", name,
                                      count, kMostExplicitSteps),
                          {}, "leave the ranks in their own order, or take a pattern of fewer steps");
    EmbedOptions embedding;
    embedding.channel = lane.channel;
    embed(
        part, ranks,
        [&](int, ir::Buffer buffer, std::int64_t index) -> Placed {
            if (buffer == ir::Buffer::scratch) return {buffer, lane.scratch + index, std::int64_t{1} << 31};
            const std::int64_t shard = index / c.chunks, chunk = index % c.chunks;
            const std::int64_t stands =
                holds_all_shards(c.kind, buffer) ? order[static_cast<std::size_t>(shard)] : shard;
            return {buffer, stands * whole.chunks + lane.index * c.chunks + chunk, c.chunks - chunk};
        },
        steps, embedding);
    const auto scratch = part.scratch_places();
    return lane.scratch + *std::max_element(scratch.begin(), scratch.end());
}

std::vector<int> patterns::positions_in_order(const ir::Collective& c, int group,
                                              const std::vector<int>& rank_order) {
    std::vector<int> order;
    if (rank_order.empty()) {
        order.resize(static_cast<std::size_t>(c.group_size(group)));
        std::iota(order.begin(), order.end(), 0);
    }
    for (const int rank : rank_order) {
        const auto [g, position] = c.position_of(rank);
        if (g == group) order.push_back(position);
    }
    return order;
}

std::int64_t patterns::common_chunks(const std::string& name, const ir::Collective& collective) {
    return chunks_for(*find_entry(find_family(name), collective.kind), collective).first;
}

const std::vector<PatternInfo>& fixed_patterns() {
    static const std::vector<PatternInfo> list = [] {
        std::vector<PatternInfo> infos;
        for (const Family& family : families()) infos.push_back(family.info);
        return infos;
    }();
    return list;
}

bool serves(const std::string& name, ir::CollectiveKind kind) {
    return find_entry(find_family(name), kind) != nullptr;
}

bool serves(const std::string& name, const PatternOptions& options, std::string* why) {
    const Family& family = find_family(name);
    PatternOptions checked = options;
    std::string reason;
    try {
        reason = refusal(family, checked);
    } catch (const Error& error) {
        reason = error.what();
    }
    if (why) *why = reason;
    return reason.empty();
}

ir::Algorithm fixed_pattern(const std::string& name, const PatternOptions& options) {
    const Family& family = find_family(name);
    PatternOptions checked = options;
    if (const std::string reason = refusal(family, checked); !reason.empty()) throw input_error(reason);
    if (family.make) return family.make(checked);

    auto& c = checked.collective;
    const Entry& entry = *find_entry(family, c.kind);
    const auto [chunks, parts] = chunks_for(entry, c);
    c.chunks = chunks;
    bool reordered = false;
    for (int g = 0; g < c.group_count(); ++g) {
        const auto order = patterns::positions_in_order(c, g, checked.rank_order);
        reordered = reordered || !std::is_sorted(order.begin(), order.end());
    }
    if (!reordered) return write_canonical(family, entry, c, parts);

    std::vector<ir::Step> steps;
    for (int g = 0; g < c.group_count(); ++g)
        patterns::append_ordered(name, c, g, patterns::positions_in_order(c, g, checked.rank_order), {},
                                 steps);
    return explicit_algorithm(fmt::format("{} {}", family.info.name, to_string(entry.kind)), c,
                              std::move(steps));
}

}  // namespace baton::synth
