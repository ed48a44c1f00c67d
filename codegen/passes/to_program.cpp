// The graph as a Program: scratch places packed, nodes dealt to their threadblocks in key order, needs
// spelled out.
#include <baton/base/error.hpp>
#include <baton/codegen/passes/graph.hpp>

#include <algorithm>
#include <map>
#include <tuple>

namespace baton::codegen {
namespace {

/// Scratch places that living nodes use, renumbered densely in their order, so that runs stay runs.
class ScratchPacking {
public:
    explicit ScratchPacking(const Graph& graph)
        : used_(graph.collective.ranks), dense_(graph.collective.ranks) {
        for (const Node& node : graph.nodes) {
            if (node.dead) continue;
            for (const auto* operands : {&node.sources, &node.destinations}) {
                for (const ir::Operand& operand : *operands) {
                    if (operand.kind != ir::OperandKind::local || operand.buffer != ir::Buffer::scratch)
                        continue;
                    used_[node.rank].assign(operand.index, operand.index + operand.chunks, true);
                }
            }
        }
        for (std::size_t rank = 0; rank < used_.size(); ++rank) {
            std::int64_t next = 0;
            for (const auto& [begin, piece] : used_[rank].pieces()) {
                dense_[rank][begin] = next;
                next += piece.first - begin;
            }
        }
    }
    std::int32_t dense(int rank, std::int64_t index) const {
        const auto it = std::prev(dense_[rank].upper_bound(index));
        return static_cast<std::int32_t>(it->second + index - it->first);
    }
    std::vector<std::int64_t> classes(int rank, const IntervalMap<std::int64_t>& known) const {
        std::vector<std::int64_t> classes;
        for (const auto& [begin, piece] : used_[rank].pieces()) {
            const std::size_t first = classes.size();
            classes.resize(first + static_cast<std::size_t>(piece.first - begin), 0);
            const std::int64_t origin = begin;
            known.look(begin, piece.first, [&](std::int64_t from, std::int64_t to, std::int64_t value) {
                for (std::int64_t i = from; i < to; ++i)
                    classes[first + static_cast<std::size_t>(i - origin)] =
                        std::max<std::int64_t>(value - 1, 0);
            });
        }
        return classes;
    }

private:
    std::vector<IntervalMap<bool>> used_;
    std::vector<std::map<std::int64_t, std::int64_t>> dense_;  // begin -> dense number
};

class Writer {
public:
    Writer(const Graph& graph, std::vector<Location>& order)
        : graph_(graph),
          locations_(graph.nodes.size()),
          order_(order),
          aliases_(graph.collective),
          hazards_(graph.collective, aliases_),
          packing_(graph) {}

    ir::Program run() {
        program_.name = graph_.name;
        program_.collective = graph_.collective;
        program_.wide = graph_.wide;
        program_.topology_hash = graph_.topology_hash;
        for (const Lane& lane : graph_.lanes) program_.connections.push_back(lane.connection);
        program_.ranks.resize(graph_.collective.ranks);
        for (int rank = 0; rank < graph_.collective.ranks; ++rank) {
            program_.ranks[rank].scratch_classes = packing_.classes(rank, graph_.scratch_classes[rank]);
        }
        const std::vector<std::int32_t> nodes = ordered(graph_);
        order_.clear();
        order_.reserve(nodes.size());
        for (const std::int32_t number : nodes) add(number);
        for (ir::RankProgram& rank : program_.ranks) {
            for (ir::Threadblock& threadblock : rank.threadblocks) own_connections(threadblock);
        }
        return std::move(program_);
    }

private:
    void add(std::int32_t number) {
        const Node& node = graph_.nodes[number];
        auto& threadblocks = program_.ranks[node.rank].threadblocks;
        if (threadblocks.size() <= static_cast<std::size_t>(node.threadblock))
            threadblocks.resize(node.threadblock + 1);
        ir::Threadblock& threadblock = threadblocks[node.threadblock];
        needs_.clear();
        announce(graph_, hazards_, number, [&](std::int32_t other, bool far) { need(number, other, far); });
        std::vector<ir::Need> needs;
        for (const auto& [key, instruction] : needs_) {
            needs.push_back({std::get<0>(key), std::get<1>(key), instruction, std::get<2>(key)});
        }
        const std::vector<ir::Operand> sources = operands(node.rank, node.sources);
        const std::vector<ir::Operand> destinations = operands(node.rank, node.destinations);
        const int index = threadblock.add(sources, destinations, needs, node.step, node.finalize);
        locations_[number] = {node.rank, node.threadblock, index};
        order_.push_back(locations_[number]);
    }

    std::vector<ir::Operand> operands(int rank, const std::vector<ir::Operand>& from) const {
        std::vector<ir::Operand> result = from;
        for (ir::Operand& operand : result) {
            if (operand.kind == ir::OperandKind::message) {
                operand.index = 0;
            } else if (operand.buffer == ir::Buffer::scratch) {
                operand.index = packing_.dense(rank, operand.index);
            }
        }
        return result;
    }

    void need(std::int32_t number, std::int32_t other, bool far) {
        const Node& node = graph_.nodes[number];
        const Node& before = graph_.nodes[other];
        if (far) {
            // A get reads after its sender published, which orders it; a put must know that its destination
            // is free.
            const bool puts = std::any_of(
                node.destinations.begin(), node.destinations.end(), [&](const ir::Operand& operand) {
                    return operand.kind == ir::OperandKind::message &&
                           graph_.lanes[operand.target].connection.mode == ir::Mode::put;
                });
            if (puts && !same_threadblock(node, before)) require(locations_[other], ir::Event::completed);
            return;
        }
        if (before.rank == node.rank) {
            if (!same_threadblock(node, before)) require(locations_[other], ir::Event::completed);
            return;
        }
        // A remote reader of a place of this rank: its acknowledgement frees the place.
        for (const ir::Operand& source : before.sources) {
            if (source.kind != ir::OperandKind::message) continue;
            const Lane& lane = graph_.lanes[source.target];
            if (lane.connection.mode != ir::Mode::get || lane.connection.src != node.rank) continue;
            require(locations_[lane.sends[source.index]], ir::Event::source_free, source.target);
        }
        // A remote writer is the put that this node receives; its message orders it.
    }

    static bool same_threadblock(const Node& a, const Node& b) {
        return a.rank == b.rank && a.threadblock == b.threadblock;
    }

    /// Later instructions of a threadblock imply earlier ones; acknowledgements do so within one connection
    /// only.
    void require(const Location& location, ir::Event event, int lane = -1) {
        auto& instruction =
            needs_.try_emplace({location.rank, location.threadblock, event, lane}, -1).first->second;
        instruction = std::max(instruction, location.instruction);
    }

    static void own_connections(ir::Threadblock& threadblock) {
        const auto tidy = [](std::vector<int>& list) {
            std::sort(list.begin(), list.end());
            list.erase(std::unique(list.begin(), list.end()), list.end());
        };
        for (const ir::Instruction& instruction : threadblock.instructions) {
            for (const ir::Operand& operand : threadblock.sources(instruction)) {
                if (operand.kind == ir::OperandKind::message) threadblock.receives.push_back(operand.target);
            }
            for (const ir::Operand& operand : threadblock.destinations(instruction)) {
                if (operand.kind == ir::OperandKind::message) threadblock.sends.push_back(operand.target);
            }
        }
        tidy(threadblock.sends);
        tidy(threadblock.receives);
    }

    const Graph& graph_;
    std::vector<Location> locations_;
    std::vector<Location>& order_;
    Aliases aliases_;
    Hazards hazards_;
    ScratchPacking packing_;
    ir::Program program_;
    std::map<std::tuple<int, int, ir::Event, int>, std::int32_t> needs_;
};

}  // namespace

ir::Program to_program(const Graph& graph, std::vector<Location>& order) {
    return Writer(graph, order).run();
}

}  // namespace baton::codegen
