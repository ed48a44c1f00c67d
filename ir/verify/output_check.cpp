#include <baton/ir/verify/output_check.hpp>

#include <baton/base/error.hpp>
#include <baton/ir/verify/program_memory.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <tuple>

namespace baton::ir::checks {
namespace {

std::string name(const Contribution& c, const Collective& collective) {
    if (!has_shards(collective.kind) && collective.kind != CollectiveKind::custom)
        return fmt::format("rank {}", c.rank);
    return fmt::format("shard {} of rank {}", c.shard, c.rank);
}

class OutputCheck {
public:
    OutputCheck(const ProgramGraph& graph, const MemoryMap& memory, ValueTrees& trees,
                const std::array<std::vector<OutputPieces>, 2>& outputs)
        : graph_(graph),
          memory_(memory),
          collective_(graph.program->collective),
          trees_(trees),
          outputs_(outputs) {}

    Order run() {
        position_.resize(collective_.ranks);
        group_.resize(collective_.ranks);
        for (int rank = 0; rank < collective_.ranks; ++rank) {
            std::tie(group_[rank], position_[rank]) = collective_.position_of(rank);
        }
        const bool same_everywhere = collective_.kind == CollectiveKind::all_reduce ||
                                     collective_.kind == CollectiveKind::broadcast ||
                                     collective_.kind == CollectiveKind::all_gather;
        std::vector<const Pieces*> good(static_cast<std::size_t>(collective_.group_count()), nullptr);
        for (const Placement placement : kPlacements) {
            for (int rank = 0; rank < collective_.ranks; ++rank) {
                const OutputPieces& output = outputs_[static_cast<std::size_t>(placement)][rank];
                const int group = group_[rank];
                if (same_everywhere && group >= 0) {
                    if (good[group] != nullptr && *good[group] == output.pieces) continue;
                    if (good[group] != nullptr) replicas_equal_ = false;
                    good[group] = &output.pieces;
                }
                check_rank(rank, output, placement);
            }
        }
        if (!reduces(collective_.kind)) return Order::rank_order;
        for (int rank = 0; rank < collective_.ranks; ++rank) {
            if (outputs_[0][rank].pieces != outputs_[1][rank].pieces) replicas_equal_ = false;
        }
        if (rank_order_) return Order::rank_order;
        return replicas_equal_ ? Order::replicas_equal : Order::fixed;
    }

private:
    void check_rank(int rank, const OutputPieces& output, Placement placement) {
        std::int64_t index = 0;
        for (std::size_t i = 0; i < output.pieces.size(); ++i) {
            const Piece& piece = output.pieces[i];
            for (std::int64_t done = 0; done < piece.length;) {
                const std::int64_t length = std::min(piece.length - done, uniform_run(index + done));
                check_run(rank, index + done, length, piece.value.advanced(done), output.writers[i],
                          placement);
                done += length;
            }
            index += piece.length;
        }
    }

    // Places from `index` on that ask for the same contributions in consecutive classes.
    std::int64_t uniform_run(std::int64_t index) const {
        if (collective_.kind == CollectiveKind::custom) return 1;
        return collective_.chunks - index % collective_.chunks;
    }

    void check_run(int rank, std::int64_t index, std::int64_t length, Value value, Site writer,
                   Placement placement) {
        const auto where = [&] {
            return fmt::format("rank {}, {} ({})", rank, place_name(Buffer::output, index, length),
                               memory_.words(placement));
        };
        if (value.node < 0) throw check_error("is never written", where());
        const std::string last =
            writer.block >= 0 ? "written by " + graph_.name(writer) : "held from the start";
        const OutputPlace expected = collective_.output(rank, index);
        const std::int64_t count = trees_.leaf_count(value);
        if (count > kManyLeaves && count > static_cast<std::int64_t>(expected.contributions.size())) {
            throw check_error(fmt::format("holds {} contributions instead of {}; {}", count,
                                          expected.contributions.size(), last),
                              where());
        }
        const std::vector<Leaf> leaves = trees_.leaves(value);
        std::vector<Contribution> found;
        found.reserve(leaves.size());
        for (const Leaf& leaf : leaves) {
            const InputPlace place = collective_.input(leaf.rank, leaf.index);
            if (place.chunk_class != expected.chunk_class) {
                throw check_error(fmt::format("holds class {} of rank {} where class {} belongs; {}",
                                              place.chunk_class, leaf.rank, expected.chunk_class, last),
                                  where());
            }
            found.push_back({leaf.rank, place.shard});
        }
        std::sort(found.begin(), found.end());
        if (found != expected.contributions)
            throw check_error(difference(found, expected.contributions) + "; " + last, where());
        if (!reduces(collective_.kind) || expected.contributions.empty()) return;
        if (!trees_.is_finalized(value) && needs_finalize(expected)) {
            throw check_error("holds a value that no instruction finalized; " + last, where(),
                              "mark the instruction that completes the value (avg divides there)");
        }
        judge_order(value, leaves, expected);
    }

    bool needs_finalize(const OutputPlace& expected) const { return expected.contributions.size() > 1; }

    std::string difference(const std::vector<Contribution>& found,
                           const std::vector<Contribution>& expected) const {
        for (std::size_t i = 1; i < found.size(); ++i) {
            if (found[i] == found[i - 1])
                return "holds the contribution of " + name(found[i], collective_) + " twice";
        }
        for (const Contribution& c : expected) {
            if (!std::binary_search(found.begin(), found.end(), c)) {
                std::string text = "misses the contribution of " + name(c, collective_);
                if (found.size() == 1)
                    text += fmt::format(" and holds that of {}", name(found[0], collective_));
                return text;
            }
        }
        for (const Contribution& c : found) {
            if (!std::binary_search(expected.begin(), expected.end(), c)) {
                return fmt::format("holds the contribution of {}, which does not belong there",
                                   name(c, collective_));
            }
        }
        return "holds other contributions than it must";
    }

    void judge_order(Value value, std::vector<Leaf> leaves, const OutputPlace& expected) {
        if (collective_.kind == CollectiveKind::custom) {
            const auto [found, added] =
                custom_.try_emplace({expected.chunk_class, expected.contributions}, value);
            if (!added && found->second != value) replicas_equal_ = false;
        }
        if (!rank_order_) return;
        std::sort(leaves.begin(), leaves.end(), [&](const Leaf& a, const Leaf& b) {
            return std::tuple(position_[a.rank], a) < std::tuple(position_[b.rank], b);
        });
        if (trees_.completed(value) != trees_.left_fold(leaves)) rank_order_ = false;
    }

    static constexpr std::int64_t kManyLeaves = 1 << 22;

    const ProgramGraph& graph_;
    const MemoryMap& memory_;
    const Collective& collective_;
    ValueTrees& trees_;
    const std::array<std::vector<OutputPieces>, 2>& outputs_;
    std::vector<int> group_, position_;
    std::map<std::pair<std::int64_t, std::vector<Contribution>>, Value> custom_;
    bool replicas_equal_ = true, rank_order_ = true;
};

}  // namespace

Order check_outputs(const ProgramGraph& graph, const MemoryMap& memory, ValueTrees& trees,
                    const std::array<std::vector<OutputPieces>, 2>& outputs) {
    return OutputCheck(graph, memory, trees, outputs).run();
}

}  // namespace baton::ir::checks
