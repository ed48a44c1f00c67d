#include <baton/ir/verify/vector_clocks.hpp>

#include <algorithm>

namespace baton::ir::checks {

VectorClocks::VectorClocks(const ProgramGraph& graph, std::vector<int> slots)
    : graph_(graph),
      slots_(std::move(slots)),
      blocks_(graph.blocks.size()),
      clocks_(blocks_ * blocks_, -1),
      sent_(graph.ends.size()),
      received_(graph.ends.size()) {
    if (slots_.empty()) slots_.assign(graph.ends.size(), 0);
    std::size_t total = 0;
    for (const Block& block : graph.blocks) {
        first_.push_back(total);
        total += static_cast<std::size_t>(block.size());
    }
    waiters_.assign(total, 0);
    snapshot_.assign(total, -1);
    std::vector<std::int64_t> sent(graph.ends.size()), received(graph.ends.size());
    for (std::size_t b = 0; b < blocks_; ++b) {
        for (std::int32_t i = 0; i < graph.blocks[b].size(); ++i) {
            const Site site{static_cast<std::int32_t>(b), i};
            const auto k_of = [&](int connection, bool send) {
                return send ? sent[connection]++ : received[connection]++;
            };
            visit_waits(graph, site, slots_, k_of, [&](WaitReason, Site other, int, std::int64_t back) {
                if (back == 0) ++waiters_[number(other)];
                return true;
            });
        }
    }
}

void VectorClocks::join(Site site, Site other) {
    std::int32_t* mine = row(site.block);
    if (mine[other.block] < other.instruction) {
        // Clocks are closed: one that already contains `other` contains all before it.
        const std::vector<std::int32_t>& theirs = snapshots_[snapshot_[number(other)]];
        for (std::size_t b = 0; b < blocks_; ++b) mine[b] = std::max(mine[b], theirs[b]);
    }
    release(other);
}

void VectorClocks::release(Site other) {
    if (--waiters_[number(other)] > 0) return;
    std::int32_t& snapshot = snapshot_[number(other)];
    if (snapshot < 0) return;
    free_.push_back(snapshot);
    snapshot = -1;
}

bool VectorClocks::advance(Site site, std::int64_t memory_budget) {
    const auto k_of = [&](int connection, bool send) {
        return send ? sent_[connection] : received_[connection];
    };
    visit_waits(graph_, site, slots_, k_of, [&](WaitReason, Site other, int, std::int64_t back) {
        if (back == 0) join(site, other);
        return true;
    });
    const Instruction& instruction = graph_.at(site);
    for (const Operand& source : graph_.code(site).sources(instruction)) {
        if (source.kind == OperandKind::message) ++received_[source.target];
    }
    for (const Operand& destination : graph_.code(site).destinations(instruction)) {
        if (destination.kind == OperandKind::message) ++sent_[destination.target];
    }
    std::int32_t* mine = row(site.block);
    mine[site.block] = site.instruction;
    if (waiters_[number(site)] == 0) return true;
    if (free_.empty()) {
        const auto rows = static_cast<std::int64_t>(blocks_ + snapshots_.size() + 1);
        if (rows * static_cast<std::int64_t>(blocks_) * 4 > memory_budget) return false;
        free_.push_back(static_cast<std::int32_t>(snapshots_.size()));
        snapshots_.emplace_back(blocks_);
    }
    const std::int32_t slot = free_.back();
    free_.pop_back();
    std::copy(mine, mine + blocks_, snapshots_[slot].begin());
    snapshot_[number(site)] = slot;
    return true;
}

}  // namespace baton::ir::checks
