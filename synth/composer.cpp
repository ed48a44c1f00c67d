#include <baton/synth/composer.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/ir/transform.hpp>
#include <baton/synth/embed.hpp>
#include <baton/synth/patterns/family.hpp>
#include <baton/synth/strided_embed.hpp>

#include <algorithm>
#include <bit>

namespace baton::synth {
namespace {

using enum ir::Buffer;
using Kind = ir::CollectiveKind;
using Index = std::int64_t;

constexpr Index kInsidePieces = 2;  // of a run of shards that is passed on inside a host
constexpr Index kMostChunks = Index{1} << 24;

/// Thrown to leave when the schedule grows beyond its limit.
struct TooManySteps {};

class Composer {
public:
    explicit Composer(const ComposerInput& input)
        : input_(input),
          hosts_(input.rails.hosts()),
          locals_(input.rails.locals()),
          classes_(input.inside.front().collective.chunks),
          weights_(input.inside.front().collective.weights) {
        const ir::Collective& given = input.collective;
        collective_.kind = input.kind;
        collective_.ranks = given.ranks;
        collective_.groups = given.groups;
        if (ir::has_root(input.kind)) collective_.root = given.root;
        position_.assign(at(given.ranks), -1);
        for (int p = 0; p < given.group_size(); ++p) position_[at(given.rank_at(0, p))] = p;
        for (int h = 0; h < hosts_; ++h)
            for (int l = 0; l < locals_; ++l) {
                const int position = position_[at(rank(h, l))];
                in_order_ = in_order_ && position == h * locals_ + l;
                if (position == collective_.root) root_host_ = h, root_local_ = l;
                shard_at_.push_back(position);
            }
    }

    ir::Algorithm make() {
        switch (input_.kind) {
            case Kind::all_reduce: all_reduce(); break;
            case Kind::all_gather: input_.dealt ? dealt_all_gather() : torn_all_gather(); break;
            case Kind::broadcast: broadcast(); break;
            case Kind::all_to_all: all_to_all(); break;
            default: throw internal_error("no composition of this kind");
        }
        if (!in_order_ && ir::has_shards(input_.kind)) to_positions();
        return explicit_algorithm("composed", collective_, std::move(steps_));
    }

private:
    int rank(int host, int local) const { return input_.rails.ranks[at(host)][at(local)]; }
    const ir::Algorithm& gather_inside(int host) const {
        return input_.inside[at(input_.rails.class_of[at(host)])];
    }

    void check_limit() const {
        if (static_cast<Index>(steps_.size()) > input_.step_limit) throw TooManySteps{};
    }

    // ---- phases

    /// `part(host)` inside every host. `map` is told the host too. The root of `root_host` has everything;
    /// with `silent` it does not send either.
    template <class Part, class Map>
    void inside_all(const Part& part, const Map& map, int root_host = -1, bool silent = false) {
        Index end = scratch_;
        for (int h = 0; h < hosts_; ++h) {
            const RegionMap of_host = [&](int local, ir::Buffer buffer, Index index, Index chunks) {
                return map(local, buffer, index, chunks);
            };
            end = std::max(end, embed_regions(part(h), input_.rails.ranks[at(h)], of_host, scratch_, steps_,
                                              h == root_host ? root_local_ : -1, silent));
            check_limit();
        }
        scratch_ = end;
    }

    /// The pattern along every rail. `map` is told the rail and the position on it: the host's number, or
    /// with `dealt` that of `host_on_rail`.
    template <class Map>
    void between_all(const ir::Algorithm& pattern, const Map& map, bool dealt = false) {
        Index end = scratch_;
        for (int l = 0; l < locals_; ++l) {
            std::vector<int> ranks;
            for (int h = 0; h < hosts_; ++h) ranks.push_back(rank(dealt ? host_on_rail(l, h) : h, l));
            const RegionMap of_rail = [&](int host, ir::Buffer buffer, Index index, Index chunks) {
                return map(l, host, buffer, index, chunks);
            };
            end = std::max(end, embed_regions(pattern, ranks, of_rail, scratch_, steps_));
            check_limit();
        }
        scratch_ = end;
    }

    ir::Algorithm rail_pattern(const std::string& name, Kind kind, Index chunks, int root = 0) const {
        ir::Collective c;
        c.kind = kind;
        c.ranks = hosts_;
        c.chunks = chunks;
        c.root = root;
        return patterns::with_chunks(name, c);
    }

    void send(int from, ir::Buffer from_buffer, Index from_index, int to, ir::Buffer to_buffer,
              Index to_index, Index chunks) {
        ir::Step step;
        step.op = from == to ? ir::StepOp::copy : ir::StepOp::send;
        append_regions(step, from, {from_buffer, from_index, chunks}, to, {to_buffer, to_index, chunks},
                       steps_);
    }

    // ---- kinds without shards. The buffer has a part for each local rank, cut into the classes of the
    // schedule inside; each class has the blocks of the pattern between hosts.

    void cut_buffer(Index blocks) {
        blocks_ = blocks;
        part_ = classes_ * blocks;
        collective_.chunks = locals_ * part_;
        if (collective_.chunks > kMostChunks) throw TooManySteps{};
        if (weights_.empty()) return;
        for (int l = 0; l < locals_; ++l)
            for (const Index weight : weights_)
                collective_.weights.insert(collective_.weights.end(), at(blocks), weight);
    }
    /// Blocks from `block` on of every class of a part.
    Region blocks_of(int local, Index block, Index count) const {
        return {output, local * part_ + block, count, classes_, blocks_, count};
    }
    /// Classes from number `first` on, counted through all parts.
    Region classes_from(ir::Buffer buffer, Index first, Index count) const {
        return {buffer, first * blocks_, count * blocks_, 1, 0, count};
    }

    void gather_parts(int root_host, bool silent = false) {
        inside_all([&](int h) -> const ir::Algorithm& { return gather_inside(h); },
                   [&](int local, ir::Buffer buffer, Index index, Index chunks) {
                       return classes_from(output, buffer == input ? local * classes_ + index : index,
                                           chunks);
                   },
                   root_host, silent);
    }

    /// Whether the root sends its part to every other rank of its host itself, and nothing else.
    bool root_is_hub() const {
        Index own = 0, all = 0;
        auto cursor = gather_inside(root_host_).steps();
        for (ir::Step step; cursor.next(step);) {
            if (step.src_rank != root_local_ || step.dst_rank == root_local_) continue;
            all += step.chunks;
            const Index first = step.src_buffer == input ? 0 : step.src_index - root_local_ * classes_;
            if (step.src_buffer != scratch && first >= 0 && first + step.chunks <= classes_)
                own += step.chunks;
        }
        return own == all && own == (locals_ - 1) * classes_;
    }

    void all_reduce() {
        const std::string& name = input_.between;
        cut_buffer(patterns::natural_chunks(name, Kind::all_reduce, hosts_));
        std::vector<ir::Algorithm> scatter;
        for (const ir::Algorithm& gather : input_.inside) scatter.push_back(ir::reverse(gather));
        inside_all([&](int h) -> const ir::Algorithm& { return scatter[at(input_.rails.class_of[at(h)])]; },
                   [&](int local, ir::Buffer buffer, Index index, Index chunks) {
                       return buffer == input ? classes_from(input, index, chunks)
                                              : classes_from(output, local * classes_ + index, chunks);
                   });
        between_all(
            rail_pattern(name, Kind::all_reduce, blocks_),
            [&](int l, int, ir::Buffer, Index index, Index chunks) { return blocks_of(l, index, chunks); });
        gather_parts(-1);
    }

    // Where the root would send its own part to every rank of its host, beside all other parts, it gives a
    // piece of it to each, who pass theirs on: the root then sends everything once. Not for the patterns that
    // are there for few steps.
    void broadcast() {
        const std::string& name = input_.between;
        const Index others = locals_ - 1;
        const bool dealt = (name == "double_binary_tree" || name == "chain") && others > 1 && root_is_hub();
        cut_buffer(patterns::natural_chunks(name, Kind::broadcast, hosts_) * (dealt ? others : 1));
        const int root = rank(root_host_, root_local_);
        send(root, input, 0, root, output, 0, collective_.chunks);
        for (int l = 0; l < locals_; ++l)
            if (l != root_local_) send(root, input, l * part_, rank(root_host_, l), output, l * part_, part_);
        if (dealt) deal_own_part();
        between_all(
            rail_pattern(name, Kind::broadcast, blocks_, root_host_),
            [&](int l, int, ir::Buffer, Index index, Index chunks) { return blocks_of(l, index, chunks); });
        gather_parts(root_host_, dealt);
    }

    void deal_own_part() {
        const Index piece = part_ / (locals_ - 1);
        Index place = root_local_ * part_;
        for (int l = 0; l < locals_; ++l) {
            if (l == root_local_) continue;
            const int through = rank(root_host_, l);
            send(rank(root_host_, root_local_), input, place, through, output, place, piece);
            for (int to = 0; to < locals_; ++to)
                if (to != l && to != root_local_)
                    send(through, output, place, rank(root_host_, to), output, place, piece);
            place += piece;
        }
    }

    // ---- kinds with shards; shards are numbered host by host here

    /// Every rail gathers the shards of its ranks: one run of places per host in each step.
    void torn_all_gather() {
        collective_.chunks = classes_;
        collective_.weights = weights_;
        const Index row = locals_ * classes_;
        between_all(rail_pattern(input_.between, Kind::all_gather, 1),
                    [&](int l, int, ir::Buffer buffer, Index index, Index chunks) -> Region {
                        if (buffer == input) return {input, 0, classes_};
                        return {output, index * row + l * classes_, classes_, chunks, row, chunks};
                    });
        inside_all([&](int h) -> const ir::Algorithm& { return gather_inside(h); },
                   [&](int local, ir::Buffer buffer, Index index, Index chunks) -> Region {
                       if (buffer == input) index += local * classes_;
                       return {output, index, chunks, hosts_, row, chunks};
                   });
    }

    /// First of the hosts whose shards rail `local` gathers.
    Index first_host(Index local) const { return (local * hosts_ + locals_ - 1) / locals_; }

    /// The host at a position of a rail. Where the rails' runs of hosts are equally long, the hosts at one
    /// place of each run stand together, those of the rail's own run first: then all hosts do the same.
    int host_on_rail(int local, int position) const {
        if (hosts_ % locals_ != 0) return position;
        const int turn = position % locals_;
        const bool pairs = std::has_single_bit(static_cast<unsigned>(locals_));
        const int run = pairs ? turn ^ local : (turn + local) % locals_;
        return run * (hosts_ / locals_) + position / locals_;
    }

    /// Rail l gathers the shards of hosts first_host(l) and following, all of them: one run of the output.
    /// They are gathered inside these hosts and dealt out along the rail, so that all its ranks have equal
    /// shares to begin with. Costs a rail (ranks of a host - 1) / (hosts - 1) more than its own shards would.
    void dealt_all_gather() {
        std::vector<Index> begin;  // of each rail's run
        for (int l = 0; l <= locals_; ++l) begin.push_back(first_host(l) * locals_);
        // Where the blocks of the positions on a rail begin, within its run.
        const auto block = [&](int l, Index p) { return p * (begin[at(l) + 1] - begin[at(l)]) / hosts_; };
        for (int l = 0; l < locals_; ++l)
            for (auto h = static_cast<int>(first_host(l)); h < first_host(l + 1); ++h) {
                for (int from = 0; from < locals_; ++from)
                    send(rank(h, from), input, 0, rank(h, l), output, Index{h} * locals_ + from, 1);
                deal(h, l, begin[at(l)], block);
            }
        between_all(
            rail_pattern(input_.between, Kind::all_gather, 1),
            [&](int l, int host, ir::Buffer buffer, Index index, Index chunks) -> Region {
                if (buffer == input) index += host;
                const Index from = block(l, index), to = block(l, index + chunks);
                return {output, begin[at(l)] + from, to - from, 1, 0, chunks};
            },
            true);
        std::vector<Index> before{0};  // prefix sums of weights
        for (Index c = 0; c < classes_; ++c)
            before.push_back(before.back() + (weights_.empty() ? 1 : weights_[at(c)]));
        const auto end_of = [&](Index chunk, Index piece) {
            const auto l = at(chunk / classes_);
            return begin[l] + (piece + 1) * (begin[l + 1] - begin[l]) / kInsidePieces;
        };
        // In pieces, because the longest message along the rail brings half of a run in the end.
        for (Index piece = 0; piece < kInsidePieces; ++piece) {
            const auto cut = [&](Index chunk) {  // in places of the output
                const auto l = at(chunk / classes_);
                const Index run = begin[l + 1] - begin[l];
                const Index first = piece * run / kInsidePieces, last = (piece + 1) * run / kInsidePieces;
                return begin[l] + first + (last - first) * before[at(chunk % classes_)] / before.back();
            };
            inside_all([&](int h) -> const ir::Algorithm& { return gather_inside(h); },
                       [&](int local, ir::Buffer buffer, Index index, Index) -> Region {
                           if (buffer == input) index += local * classes_;
                           const Index from = cut(index);
                           const Index to =
                               index % classes_ + 1 < classes_ ? cut(index + 1) : end_of(index, piece);
                           return {output, from, to - from, 1, 0, 1};
                       });
        }
    }

    /// Host h deals its shards to the positions of rail l whose blocks they fall into.
    template <class Block>
    void deal(int h, int l, Index rail_begin, const Block& block) {
        const Index from = Index{h} * locals_ - rail_begin, to = from + locals_;
        for (int p = 0; p < hosts_; ++p) {
            const Index first = std::max(from, block(l, p)), last = std::min(to, block(l, p + 1));
            const int host = host_on_rail(l, p);
            if (host != h && first < last)
                send(rank(h, l), output, rail_begin + first, rank(host, l), output, rail_begin + first,
                     last - first);
        }
    }

    void all_to_all() {
        ir::Collective c;
        c.kind = Kind::all_to_all;
        c.ranks = locals_;
        const ir::Algorithm exchange = patterns::with_chunks("direct", c);
        // Scratch of a rank: for each host what its local ranks have for the rank of this rail there.
        scratch_ = Index{hosts_} * locals_;
        inside_all([&](int) -> const ir::Algorithm& { return exchange; },
                   [&](int, ir::Buffer buffer, Index index, Index) -> Region {
                       return {buffer == input ? input : scratch, index, 1, hosts_, locals_};
                   });
        between_all(
            rail_pattern("direct", Kind::all_to_all, 1),
            [&](int, int, ir::Buffer buffer, Index index, Index chunks) -> Region {
                return {buffer == input ? scratch : output, index * locals_, chunks * locals_, 1, 0, chunks};
            });
    }

    /// From shards counted host by host to the positions of the group.
    void to_positions() {
        const bool all_inputs = input_.kind == Kind::all_to_all;
        const Index chunks = collective_.chunks;
        std::vector<ir::Step> torn;
        for (const ir::Step& step : steps_) {
            for (Index done = 0; done < step.chunks;) {
                ir::Step piece = step;
                piece.chunks = 1;
                const auto place = [&](ir::Buffer buffer, Index index) {
                    if (buffer == scratch || (buffer == input && !all_inputs)) return index;
                    return shard_at_[at(index / chunks)] * chunks + index % chunks;
                };
                piece.src_index = static_cast<std::int32_t>(place(step.src_buffer, step.src_index + done));
                piece.dst_index = static_cast<std::int32_t>(place(step.dst_buffer, step.dst_index + done));
                while (++done < step.chunks &&
                       place(step.src_buffer, step.src_index + done) == piece.src_index + piece.chunks &&
                       place(step.dst_buffer, step.dst_index + done) == piece.dst_index + piece.chunks)
                    ++piece.chunks;
                torn.push_back(piece);
                if (static_cast<Index>(torn.size()) > input_.step_limit) throw TooManySteps{};
            }
        }
        steps_ = std::move(torn);
    }

    const ComposerInput& input_;
    int hosts_, locals_, root_host_ = 0, root_local_ = 0;
    Index classes_;
    std::vector<Index> weights_;
    ir::Collective collective_;
    std::vector<int> position_;    // of each rank in the group
    std::vector<Index> shard_at_;  // position of the rank of each (host, local)
    bool in_order_ = true;         // positions are counted host by host
    Index blocks_ = 1, part_ = 1, scratch_ = 0;
    std::vector<ir::Step> steps_;
};

}  // namespace

std::optional<ir::Algorithm> composed(const ComposerInput& input) {
    try {
        return Composer(input).make();
    } catch (const TooManySteps&) {
        return std::nullopt;
    }
}

}  // namespace baton::synth
