// From messages to steps: places of chunks at ranks, copies of what stays, and scratch where ranks relay.
#include <baton/synth/embed.hpp>
#include <baton/synth/greedy.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace baton::synth {
namespace {

using ir::Buffer;
using Kind = ir::CollectiveKind;

struct GreedyPlace {
    Buffer buffer = Buffer::scratch;
    std::int32_t index = -1;  // -1: nowhere yet
};

class GreedyWriter {
public:
    GreedyWriter(const GreedyNetwork& network, const ir::Collective& collective, const GreedyDemand& demand,
                 const GreedySchedule& schedule)
        : network_(network), collective_(collective), demand_(demand), schedule_(schedule) {
        group_of_.assign(at(collective.ranks), {-1, -1});
        for (int g = 0; g < collective.group_count(); ++g) {
            for (int p = 0; p < collective.group_size(g); ++p)
                group_of_[at(collective.rank_at(g, p))] = {g, p};
        }
        scratch_.assign(at(collective.ranks), 0);
        keep_.assign(schedule.messages.size(), 1);
    }

    std::vector<ir::Step> write() {
        const bool all_keep = (collective_.kind == Kind::all_gather || collective_.kind == Kind::broadcast) &&
                              collective_.group_count() == 1 && collective_.group_size() == collective_.ranks;
        if (!all_keep) prune();
        if (collective_.kind == Kind::all_to_all) count_sends();
        steps_.reserve(schedule_.messages.size() + at(collective_.ranks));
        open();
        for (std::size_t m = 0; m < schedule_.messages.size(); ++m) {
            if (keep_[m] != 0) move(schedule_.messages[m]);
        }
        steps_.insert(steps_.end(), closing_.begin(), closing_.end());
        return std::move(steps_);
    }

private:
    /// Group, and number within the group.
    std::pair<int, std::int64_t> local(std::int64_t chunk) const {
        const auto after = std::upper_bound(demand_.first.begin(), demand_.first.end(), chunk);
        const auto g = static_cast<int>(after - demand_.first.begin()) - 1;
        return {g, chunk - demand_.first[at(g)]};
    }

    GreedyPlace at_source(std::int64_t chunk) const {
        const auto [g, number] = local(chunk);
        const std::int64_t classes = collective_.chunks, n = collective_.group_size(g);
        std::int64_t index = number;  // broadcast, send_recv, scatter: as numbered
        if (collective_.kind == Kind::all_gather || collective_.kind == Kind::gather)
            index = number % classes;
        if (collective_.kind == Kind::all_to_all) index = number % (n * classes);
        return {Buffer::input, static_cast<std::int32_t>(index)};
    }

    /// Where `rank` must have it at the end; index -1 when it need not.
    GreedyPlace at_end(std::int64_t chunk, int rank) const {
        const auto [g, number] = local(chunk);
        const auto [own_group, p] = group_of_[at(rank)];
        if (own_group != g) return {Buffer::output, -1};
        const std::int64_t classes = collective_.chunks, n = collective_.group_size(g);
        std::int64_t index = -1;
        switch (collective_.kind) {
            case Kind::broadcast:
            case Kind::all_gather: index = number; break;
            case Kind::gather: index = p == collective_.root ? number : -1; break;
            case Kind::scatter: index = number / classes == p ? number % classes : -1; break;
            case Kind::all_to_all:
                if (number / classes % n == p) index = number / (n * classes) * classes + number % classes;
                break;
            default: index = p == collective_.receiver(g) ? number : -1; break;
        }
        return {Buffer::output, static_cast<std::int32_t>(index)};
    }

    // Backwards: a message counts when its receiver keeps the chunk or passes it on later.
    void prune() {
        BitRows passed_on(network_.ranks(), demand_.chunks());
        for (std::size_t m = schedule_.messages.size(); m-- > 0;) {
            const GreedyMessage& message = schedule_.messages[m];
            const GreedyEdge& edge = network_.edges()[at(message.edge)];
            keep_[m] = at_end(message.chunk, edge.to).index >= 0 || passed_on.test(edge.to, message.chunk);
            if (keep_[m] != 0) passed_on.set(edge.from, message.chunk);
        }
    }

    void count_sends() {
        unsent_.assign(demand_.source.size(), 0);
        for (std::size_t m = 0; m < schedule_.messages.size(); ++m) {
            const GreedyMessage& message = schedule_.messages[m];
            if (keep_[m] != 0 && network_.edges()[at(message.edge)].from == demand_.source[at(message.chunk)])
                ++unsent_[at(message.chunk)];
        }
    }

    // What a rank keeps of its own input.
    void open() {
        for (int g = 0; g < collective_.group_count(); ++g) {
            for (int p = 0; p < collective_.group_size(g); ++p) {
                const int rank = collective_.rank_at(g, p);
                const auto classes = static_cast<std::int32_t>(collective_.chunks);
                std::int32_t from = 0, to = 0;
                switch (collective_.kind) {
                    case Kind::all_gather: to = p * classes; break;
                    case Kind::all_to_all: from = to = p * classes; break;
                    case Kind::broadcast:
                        if (p != collective_.root) continue;
                        break;
                    case Kind::gather:
                        if (p != collective_.root) continue;
                        to = p * classes;
                        break;
                    case Kind::scatter:
                        if (p != collective_.root) continue;
                        from = p * classes;
                        break;
                    default:
                        if (p != collective_.root || collective_.receiver(g) != p) continue;
                        break;
                }
                ir::Step step;
                step.op = ir::StepOp::copy;
                step.src_rank = step.dst_rank = rank;
                step.src_index = from;
                step.dst_index = to;
                step.chunks = classes;
                steps_.push_back(step);
            }
        }
    }

    void move(const GreedyMessage& message) {
        const GreedyEdge& edge = network_.edges()[at(message.edge)];
        const GreedyPlace from = holding(message.chunk, edge.from);
        GreedyPlace to = at_end(message.chunk, edge.to);
        if (collective_.kind == Kind::all_to_all && edge.from == demand_.source[at(message.chunk)])
            --unsent_[at(message.chunk)];
        if (to.index < 0 || must_wait(message.chunk, edge.to)) {
            const GreedyPlace end = to;
            to = {Buffer::scratch, scratch_[at(edge.to)]++};
            relayed_.emplace(key(message.chunk, edge.to), to.index);
            if (end.index >= 0) closing_.push_back(step(ir::StepOp::copy, edge.to, to, edge.to, end));
        }
        steps_.push_back(step(ir::StepOp::send, edge.from, from, edge.to, to));
    }

    // In place, the output of an all_to_all covers input that may not have been sent yet.
    bool must_wait(std::int64_t chunk, int rank) const {
        if (collective_.kind != Kind::all_to_all) return false;
        const GreedyPlace end = at_end(chunk, rank);
        const auto [g, p] = group_of_[at(rank)];
        const std::int64_t n = collective_.group_size(g);
        return unsent_[at(demand_.first[at(g)] + p * n * collective_.chunks + end.index)] > 0;
    }

    GreedyPlace holding(std::int64_t chunk, int rank) const {
        if (rank == demand_.source[at(chunk)]) return at_source(chunk);
        if (!relayed_.empty()) {
            const auto place = relayed_.find(key(chunk, rank));
            if (place != relayed_.end()) return {Buffer::scratch, place->second};
        }
        return at_end(chunk, rank);
    }

    std::uint64_t key(std::int64_t chunk, int rank) const {
        return static_cast<std::uint64_t>(chunk) * static_cast<std::uint64_t>(collective_.ranks) +
               static_cast<std::uint64_t>(rank);
    }

    static ir::Step step(ir::StepOp op, int from, GreedyPlace source, int to, GreedyPlace destination) {
        ir::Step made;
        made.op = op;
        made.src_rank = from;
        made.dst_rank = to;
        made.src_buffer = source.buffer;
        made.dst_buffer = destination.buffer;
        made.src_index = source.index;
        made.dst_index = destination.index;
        return made;
    }

    const GreedyNetwork& network_;
    const ir::Collective& collective_;
    const GreedyDemand& demand_;
    const GreedySchedule& schedule_;
    std::vector<std::pair<int, int>> group_of_;  // [rank]: group and position, -1 for relays
    std::vector<char> keep_;                     // [message]
    std::vector<std::int32_t> unsent_;           // [chunk]: messages from its source still to come
    std::vector<std::int32_t> scratch_;          // [rank]: places used
    std::unordered_map<std::uint64_t, std::int32_t> relayed_;
    std::vector<ir::Step> steps_, closing_;
};

}  // namespace

ir::Algorithm greedy_algorithm(const GreedyNetwork& network, const ir::Collective& collective,
                               const GreedyDemand& demand, const GreedySchedule& schedule) {
    std::vector<ir::Step> steps = GreedyWriter(network, collective, demand, schedule).write();
    return explicit_algorithm(fmt::format("greedy {}", ir::to_string(collective.kind)), collective,
                              std::move(steps));
}

}  // namespace baton::synth
