#include <baton/ir/collective.hpp>

#include <baton/base/error.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>

namespace baton::ir {
namespace {

constexpr int kMaxRanks = 1 << 20;
constexpr std::int64_t kMaxChunks = std::int64_t{1} << 31;
constexpr std::int64_t kMaxWeight = std::int64_t{1} << 31;

struct KindFacts {
    CollectiveKind kind;
    std::string_view name;
    bool shards, reduces, root;
};

constexpr std::array kFacts{
    KindFacts{CollectiveKind::broadcast, "broadcast", false, false, true},
    KindFacts{CollectiveKind::scatter, "scatter", true, false, true},
    KindFacts{CollectiveKind::gather, "gather", true, false, true},
    KindFacts{CollectiveKind::all_gather, "all_gather", true, false, false},
    KindFacts{CollectiveKind::reduce, "reduce", false, true, true},
    KindFacts{CollectiveKind::reduce_scatter, "reduce_scatter", true, true, false},
    KindFacts{CollectiveKind::all_reduce, "all_reduce", false, true, false},
    KindFacts{CollectiveKind::all_to_all, "all_to_all", true, false, false},
    KindFacts{CollectiveKind::send_recv, "send_recv", false, false, true},
    KindFacts{CollectiveKind::custom, "custom", true, true, false},
};

const KindFacts& facts(CollectiveKind kind) { return kFacts[static_cast<std::size_t>(kind)]; }

void check_groups(const Collective& c, const std::string& where) {
    std::vector<bool> seen(static_cast<std::size_t>(c.ranks));
    for (std::size_t g = 0; g < c.groups.size(); ++g) {
        if (c.groups[g].empty()) throw input_error(fmt::format("group {} is empty", g), where);
        for (const int rank : c.groups[g]) {
            if (rank < 0 || rank >= c.ranks)
                throw input_error(
                    fmt::format("group {} names rank {}, but there are {} ranks", g, rank, c.ranks), where);
            if (seen[static_cast<std::size_t>(rank)])
                throw input_error(fmt::format("rank {} is in two groups", rank), where,
                                  "groups must be disjoint");
            seen[static_cast<std::size_t>(rank)] = true;
        }
    }
}

void check_custom(const Collective& c, const std::string& where) {
    if (!c.custom) throw input_error("a custom collective needs its input and output places", where);
    if (!c.groups.empty())
        throw input_error("a custom collective has no groups; list the places per rank", where);
    const auto ranks = static_cast<std::size_t>(c.ranks);
    if (c.custom->inputs.size() != ranks || c.custom->outputs.size() != ranks)
        throw input_error(
            fmt::format(
                "a custom collective of {} ranks needs {} lists of inputs and of outputs; got {} and {}",
                ranks, ranks, c.custom->inputs.size(), c.custom->outputs.size()),
            where);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        for (const auto& place : c.custom->inputs[rank]) {
            if (place.chunk_class < 0 || place.chunk_class >= c.chunks || place.shard < 0 ||
                place.shard >= kMaxChunks)
                throw input_error(
                    fmt::format("input place of rank {} has shard {} and class {}; shards are 0 and above, "
                                "classes below {}",
                                rank, place.shard, place.chunk_class, c.chunks),
                    where);
        }
        for (const auto& place : c.custom->outputs[rank]) {
            if (place.chunk_class < 0 || place.chunk_class >= c.chunks)
                throw input_error(fmt::format("output place of rank {} has class {}; classes are below {}",
                                              rank, place.chunk_class, c.chunks),
                                  where);
            if (place.contributions.empty())
                throw input_error(fmt::format("an output place of rank {} has no contribution", rank), where);
            for (std::size_t i = 0; i < place.contributions.size(); ++i) {
                const auto& contribution = place.contributions[i];
                if (contribution.rank < 0 || contribution.rank >= c.ranks)
                    throw input_error(
                        fmt::format("an output place of rank {} asks for rank {}, but there are {} ranks",
                                    rank, contribution.rank, c.ranks),
                        where);
                if (i > 0 && !(place.contributions[i - 1] < contribution))
                    throw input_error(
                        fmt::format("contributions of an output place of rank {} must be sorted, each once",
                                    rank),
                        where);
            }
        }
    }
}

}  // namespace

std::string_view to_string(Buffer buffer) {
    constexpr std::array<std::string_view, 3> names{"input", "output", "scratch"};
    return names[static_cast<std::size_t>(buffer)];
}

std::string_view to_string(CollectiveKind kind) { return facts(kind).name; }

CollectiveKind parse_collective_kind(std::string_view name, const std::string& where) {
    std::string known;
    for (const auto& entry : kFacts) {
        if (entry.name == name) return entry.kind;
        known += (known.empty() ? "" : ", ") + std::string(entry.name);
    }
    throw input_error(fmt::format("unknown collective \"{}\"", name.substr(0, 60)), where, "known: " + known);
}

const std::vector<CollectiveKind>& standard_kinds() {
    static const std::vector<CollectiveKind> kinds = [] {
        std::vector<CollectiveKind> list;
        for (const auto& entry : kFacts)
            if (entry.kind != CollectiveKind::custom) list.push_back(entry.kind);
        return list;
    }();
    return kinds;
}

bool has_shards(CollectiveKind kind) { return facts(kind).shards; }
bool reduces(CollectiveKind kind) { return facts(kind).reduces; }
bool has_root(CollectiveKind kind) { return facts(kind).root; }
bool has_in_place_form(CollectiveKind kind) {
    return kind != CollectiveKind::send_recv && kind != CollectiveKind::custom;
}

void Collective::check(const std::string& where) const {
    if (ranks < 1 || ranks > kMaxRanks)
        throw input_error(fmt::format("ranks must be 1 to {}; got {}", kMaxRanks, ranks), where);
    if (chunks < 1 || chunks > kMaxChunks)
        throw input_error(fmt::format("chunks must be 1 to {}; got {}", kMaxChunks, chunks), where);
    if (!groups.empty()) check_groups(*this, where);
    for (int g = 0; g < group_count(); ++g) {
        const int n = group_size(g);
        if (has_root(kind) && (root < 0 || root >= n))
            throw input_error(fmt::format("root {} is not a position of a group of {} ranks", root, n),
                              where);
        if (kind == CollectiveKind::send_recv && (peer < -1 || peer >= n))
            throw input_error(fmt::format("peer {} is not a position of a group of {} ranks", peer, n),
                              where);
    }
    if (!weights.empty()) {
        if (static_cast<std::int64_t>(weights.size()) != chunks)
            throw input_error(fmt::format("{} weights for {} chunks", weights.size(), chunks), where,
                              "give one weight per chunk or none");
        for (const auto weight : weights)
            if (weight < 1 || weight > kMaxWeight)
                throw input_error(fmt::format("weights must be 1 to {}; got {}", kMaxWeight, weight), where);
    }
    if (kind == CollectiveKind::custom)
        check_custom(*this, where);
    else if (custom)
        throw input_error(
            fmt::format("places are listed for {}, but only custom takes them", to_string(kind)), where);
}

std::pair<int, int> Collective::position_of(int rank) const {
    if (groups.empty()) return {0, rank};
    for (std::size_t g = 0; g < groups.size(); ++g) {
        const auto found = std::find(groups[g].begin(), groups[g].end(), rank);
        if (found != groups[g].end())
            return {static_cast<int>(g), static_cast<int>(found - groups[g].begin())};
    }
    return {-1, -1};
}

std::int64_t Collective::places(int rank, Buffer buffer) const {
    if (buffer == Buffer::scratch || rank < 0 || rank >= ranks) return 0;
    const bool is_input = buffer == Buffer::input;
    if (kind == CollectiveKind::custom)
        return static_cast<std::int64_t>(is_input ? custom->inputs[static_cast<std::size_t>(rank)].size()
                                                  : custom->outputs[static_cast<std::size_t>(rank)].size());
    const auto [group, position] = position_of(rank);
    if (group < 0) return 0;
    const std::int64_t all = group_size(group) * chunks;
    const bool at_root = position == root;
    switch (kind) {
        case CollectiveKind::broadcast: return is_input ? (at_root ? chunks : 0) : chunks;
        case CollectiveKind::reduce: return is_input ? chunks : (at_root ? chunks : 0);
        case CollectiveKind::scatter: return is_input ? (at_root ? all : 0) : chunks;
        case CollectiveKind::gather: return is_input ? chunks : (at_root ? all : 0);
        case CollectiveKind::all_gather: return is_input ? chunks : all;
        case CollectiveKind::reduce_scatter: return is_input ? all : chunks;
        case CollectiveKind::all_reduce: return chunks;
        case CollectiveKind::all_to_all: return all;
        case CollectiveKind::send_recv:
            return is_input ? (at_root ? chunks : 0) : (position == receiver(group) ? chunks : 0);
        case CollectiveKind::custom: break;
    }
    return 0;
}

InputPlace Collective::input(int rank, std::int64_t index) const {
    if (kind == CollectiveKind::custom)
        return custom->inputs[static_cast<std::size_t>(rank)][static_cast<std::size_t>(index)];
    return {index / chunks, index % chunks};
}

OutputPlace Collective::output(int rank, std::int64_t index) const {
    if (kind == CollectiveKind::custom)
        return custom->outputs[static_cast<std::size_t>(rank)][static_cast<std::size_t>(index)];
    OutputPlace place;
    place.chunk_class = index % chunks;
    const auto [group, position] = position_of(rank);
    const auto all_at = [&, group = group](std::int64_t shard) {
        for (int q = 0; q < group_size(group); ++q) place.contributions.push_back({rank_at(group, q), shard});
        std::sort(place.contributions.begin(), place.contributions.end());
    };
    switch (kind) {
        case CollectiveKind::broadcast:
        case CollectiveKind::send_recv: place.contributions = {{rank_at(group, root), 0}}; break;
        case CollectiveKind::scatter: place.contributions = {{rank_at(group, root), position}}; break;
        case CollectiveKind::gather:
        case CollectiveKind::all_gather:
            place.contributions = {{rank_at(group, static_cast<int>(index / chunks)), 0}};
            break;
        case CollectiveKind::all_to_all:
            place.contributions = {{rank_at(group, static_cast<int>(index / chunks)), position}};
            break;
        case CollectiveKind::reduce:
        case CollectiveKind::all_reduce: all_at(0); break;
        case CollectiveKind::reduce_scatter: all_at(position); break;
        case CollectiveKind::custom: break;
    }
    return place;
}

std::int64_t Collective::class_of(int rank, Buffer buffer, std::int64_t index) const {
    if (kind != CollectiveKind::custom) return index % chunks;
    const auto r = static_cast<std::size_t>(rank);
    const auto i = static_cast<std::size_t>(index);
    return buffer == Buffer::input ? custom->inputs[r][i].chunk_class : custom->outputs[r][i].chunk_class;
}

std::int64_t Collective::shard_of(int rank, Buffer buffer, std::int64_t index) const {
    if (kind == CollectiveKind::custom)
        return buffer == Buffer::input
                   ? custom->inputs[static_cast<std::size_t>(rank)][static_cast<std::size_t>(index)].shard
                   : index;
    return has_shards(kind) ? index / chunks : 0;
}

std::int64_t Collective::output_alias(int rank, std::int64_t input_index) const {
    const std::int64_t outputs = places(rank, Buffer::output);
    const std::int64_t inputs = places(rank, Buffer::input);
    if (outputs == 0 || input_index < 0 || input_index >= inputs) return -1;
    std::int64_t index = input_index;
    switch (kind) {
        case CollectiveKind::send_recv:
        case CollectiveKind::custom: return -1;
        case CollectiveKind::broadcast:
        case CollectiveKind::reduce:
        case CollectiveKind::all_reduce:
        case CollectiveKind::all_to_all: break;
        case CollectiveKind::all_gather:
        case CollectiveKind::gather: index = position_of(rank).second * chunks + input_index; break;
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::scatter: index = input_index - position_of(rank).second * chunks; break;
    }
    return index >= 0 && index < outputs ? index : -1;
}

std::int64_t Collective::input_alias(int rank, std::int64_t output_index) const {
    const std::int64_t outputs = places(rank, Buffer::output);
    const std::int64_t inputs = places(rank, Buffer::input);
    if (inputs == 0 || output_index < 0 || output_index >= outputs) return -1;
    std::int64_t index = output_index;
    switch (kind) {
        case CollectiveKind::send_recv:
        case CollectiveKind::custom: return -1;
        case CollectiveKind::broadcast:
        case CollectiveKind::reduce:
        case CollectiveKind::all_reduce:
        case CollectiveKind::all_to_all: break;
        case CollectiveKind::all_gather:
        case CollectiveKind::gather: index = output_index - position_of(rank).second * chunks; break;
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::scatter: index = output_index + position_of(rank).second * chunks; break;
    }
    return index >= 0 && index < inputs ? index : -1;
}

bool Collective::operator==(const Collective& other) const {
    const auto same_custom = [&] {
        if (!custom || !other.custom) return !custom && !other.custom;
        if (custom->inputs != other.custom->inputs || custom->outputs.size() != other.custom->outputs.size())
            return false;
        for (std::size_t r = 0; r < custom->outputs.size(); ++r) {
            const auto& a = custom->outputs[r];
            const auto& b = other.custom->outputs[r];
            const auto same = [](const OutputPlace& x, const OutputPlace& y) {
                return x.chunk_class == y.chunk_class && x.contributions == y.contributions;
            };
            if (!std::equal(a.begin(), a.end(), b.begin(), b.end(), same)) return false;
        }
        return true;
    };
    return kind == other.kind && ranks == other.ranks && chunks == other.chunks &&
           (!has_root(kind) || root == other.root) &&
           (kind != CollectiveKind::send_recv || receiver() == other.receiver()) &&
           weights == other.weights && groups == other.groups && same_custom();
}

std::string describe(const Collective& c) {
    std::string text = fmt::format("{} of {} rank{}, {} chunk{}", to_string(c.kind), c.ranks,
                                   c.ranks == 1 ? "" : "s", c.chunks, c.chunks == 1 ? "" : "s");
    if (has_root(c.kind) && c.root != 0) text += fmt::format(", root {}", c.root);
    if (c.kind == CollectiveKind::send_recv) text += fmt::format(", to {}", c.receiver());
    if (!c.groups.empty())
        text += fmt::format(", {} group{}", c.groups.size(), c.groups.size() == 1 ? "" : "s");
    if (!c.weights.empty()) {
        text += ", weights";
        for (std::size_t k = 0; k < c.weights.size() && k < 8; ++k) text += fmt::format(" {}", c.weights[k]);
        if (c.weights.size() > 8) text += " ...";
    }
    return text;
}

Partition::Partition(const Collective& collective, std::int64_t count, std::int64_t unit)
    : classes_(collective.chunks), count_(count), unit_(unit) {
    if (count < 0 || unit < 1)
        throw input_error(fmt::format("a shard of {} elements in units of {} has no partition", count, unit));
    std::int64_t total = classes_;
    if (!collective.weights.empty()) {
        prefix_.reserve(collective.weights.size() + 1);
        prefix_.push_back(0);
        for (const auto weight : collective.weights) prefix_.push_back(prefix_.back() + weight);
        total = prefix_.back();
    }
    const std::int64_t units = count / unit + (count % unit != 0);
    q_ = units / total;
    m_ = units % total;
}

ElementRange Partition::class_range(std::int64_t k) const {
    const auto boundary = [&](std::int64_t cls) {
        const std::int64_t w = prefix_.empty() ? cls : prefix_[static_cast<std::size_t>(cls)];
        // q*W <= units, so q*w stays in range; the last boundary may pass `count` by less than a unit.
        const std::int64_t units = q_ * w + std::min(w, m_);
        return units > count_ / unit_ ? count_ : std::min(count_, units * unit_);
    };
    return {boundary(k), boundary(k + 1)};
}

ElementRange Partition::tile_range(std::int64_t k, std::int64_t tile, std::int64_t tiles) const {
    const ElementRange whole = class_range(k);
    const std::int64_t units = whole.size() / unit_ + (whole.size() % unit_ != 0);
    const std::int64_t base = units / tiles, extra = units % tiles;
    const auto boundary = [&](std::int64_t t) {
        const std::int64_t before = base * t + std::min(t, extra);
        return before >= units ? whole.end : std::min(whole.end, whole.begin + before * unit_);
    };
    return {boundary(tile), boundary(tile + 1)};
}

std::int64_t Partition::largest_class() const {
    std::int64_t widest = 0;
    if (prefix_.empty()) {
        widest = q_ + (m_ > 0 ? 1 : 0);
    } else {
        for (std::size_t k = 0; k + 1 < prefix_.size(); ++k) {
            const auto at = [&](std::size_t c) { return q_ * prefix_[c] + std::min(prefix_[c], m_); };
            widest = std::max(widest, at(k + 1) - at(k));
        }
    }
    return widest * unit_;
}

}  // namespace baton::ir
