// What the lowering passes work on: every action of every rank as a node, in one total order.
#pragma once

#include <baton/codegen/lower.hpp>
#include <baton/codegen/passes/interval_map.hpp>
#include <baton/ir/collective.hpp>
#include <baton/ir/program.hpp>

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace baton::codegen {

/// Place of a node in the total order: levels are logical time, sends of a level come before everything else
/// in it. Every dependency, message and credit points from a smaller key to a larger one.
struct Key {
    std::int32_t level = 0;
    std::int32_t phase = 0;   ///< 0: sends, 1: receives and local work
    std::int64_t number = 0;  ///< order of creation: program order, with the reads of a par block first
    auto operator<=>(const Key&) const = default;
};

/// One instruction to be. In message operands `index` is the number of the message on its connection.
struct Node {
    int rank = 0;
    Key key;
    std::vector<ir::Operand> sources, destinations;
    bool finalize = false;
    bool dead = false;  ///< removed, or merged into another node
    std::int64_t step = -1;
    int threadblock = -1;  ///< set by the threadblocks pass; -1 before
};

/// A connection and its messages: the k-th send pairs with the k-th receive.
struct Lane {
    ir::Connection connection;
    std::vector<std::int32_t> sends, receives;  ///< node numbers
};

/// An algorithm being lowered.
struct Graph {
    std::string name;
    ir::Collective collective;
    std::vector<Node> nodes;
    std::vector<Lane> lanes;
    std::vector<IntervalMap<std::int64_t>>
        scratch_classes;  ///< [rank]: class + 1 of each scratch place; 0 = unused
    bool wide = false;
    std::string topology_hash;
};

/// Numbers of the living nodes in key order.
std::vector<std::int32_t> ordered(const Graph& graph);

/// In place, a run of places as up to three runs of distinct memory: input places that share memory with
/// output places become those.
struct Run {
    int rank = 0;
    ir::Buffer buffer = ir::Buffer::output;
    std::int64_t index = 0, chunks = 0;
    bool operator==(const Run&) const = default;
};
Run run_of(int rank, const ir::Operand& operand);

/// Knows which input places are which output places in place, per rank in constant time.
class Aliases {
public:
    explicit Aliases(const ir::Collective& collective);
    /// False when no input place of any rank is an output place.
    bool any() const { return any_; }
    /// `run` as runs of distinct memory, in order.
    std::vector<Run> memory(const Run& run) const;

private:
    struct Window {
        std::int64_t begin = 0, end = 0, shift = 0;  // input [begin, end) is output [begin + shift, ...)
    };
    std::vector<Window> windows_;
    bool any_ = false;
};

/// Who wrote and read each place last, with input and output apart and, at once, merged as in-place calls
/// merge them. Nodes are announced in key order; each announcement reports the earlier nodes it must come
/// after.
class Hazards {
public:
    Hazards(const ir::Collective& collective, const Aliases& aliases);

    /// Calls f(node) for every node that a read of `run` must come after, then notes `reader`.
    template <class F>
    void read(const Run& run, std::int32_t reader, F&& f) {
        for_runs(run, [&](auto& map, const Run& part) {
            map.visit(part.index, part.index + part.chunks, [&](std::int64_t, std::int64_t, Access& access) {
                if (access.writer >= 0) f(access.writer);
                if (reader >= 0 && (access.readers.empty() || access.readers.back() != reader))
                    access.readers.push_back(reader);
            });
        });
    }
    /// Calls f(node) for every node that a write of `run` must come after, then notes `writer` (unless
    /// negative).
    template <class F>
    void write(const Run& run, std::int32_t writer, F&& f) {
        for_runs(run, [&](auto& map, const Run& part) {
            map.look(part.index, part.index + part.chunks,
                     [&](std::int64_t, std::int64_t, const Access& access) {
                         if (access.writer >= 0 && access.writer != writer) f(access.writer);
                         for (const std::int32_t reader : access.readers) {
                             if (reader != writer) f(reader);
                         }
                     });
            if (writer >= 0) map.assign(part.index, part.index + part.chunks, Access{writer, {}});
        });
    }
    /// The largest number of a node that wrote the memory of `run`, in place; -1 when none did.
    std::int32_t last_writer_in_place(const Run& run) const;
    /// Whether two runs are one and the same memory in place.
    bool same_memory(const Run& a, const Run& b) const { return aliases_->memory(a) == aliases_->memory(b); }

private:
    struct Access {
        std::int32_t writer = -1;
        std::vector<std::int32_t> readers;
    };
    template <class F>
    void for_runs(const Run& run, F&& f) {
        f(apart_[static_cast<std::size_t>(run.rank) * 3 + static_cast<std::size_t>(run.buffer)], run);
        if (!aliases_->any()) return;
        for (const Run& part : aliases_->memory(run)) {
            f(merged_[static_cast<std::size_t>(part.rank) * 3 + static_cast<std::size_t>(part.buffer)], part);
        }
    }
    const Aliases* aliases_;
    std::vector<IntervalMap<Access>> apart_, merged_;
};

/// Announces a node to `hazards`: its own operands, the destination that a put writes at its peer, and the
/// source that a get reads at its peer. f(node, remote) is called for every node it must come after; `remote`
/// says that the access is at another rank.
template <class F>
void announce(const Graph& graph, Hazards& hazards, std::int32_t number, F&& f);

/// The local run of the node that receives message k of a put connection, or that sends it on a get
/// connection.
Run put_destination(const Graph& graph, const Lane& lane, std::int64_t message);
Run get_source(const Graph& graph, const Lane& lane, std::int64_t message);

template <class F>
void announce(const Graph& graph, Hazards& hazards, std::int32_t number, F&& f) {
    const Node& node = graph.nodes[number];
    const auto local = [&](std::int32_t other) {
        if (other != number) f(other, false);
    };
    const auto far = [&](std::int32_t other) {
        if (other != number) f(other, true);
    };
    for (const ir::Operand& source : node.sources) {
        if (source.kind == ir::OperandKind::local) {
            hazards.read(run_of(node.rank, source), number, local);
        } else if (const Lane& lane = graph.lanes[source.target]; lane.connection.mode == ir::Mode::get) {
            hazards.read(get_source(graph, lane, source.index), number, far);
        }
    }
    for (const ir::Operand& destination : node.destinations) {
        if (destination.kind == ir::OperandKind::local) {
            hazards.write(run_of(node.rank, destination), number, local);
        } else if (const Lane& lane = graph.lanes[destination.target];
                   lane.connection.mode == ir::Mode::put) {
            hazards.write(put_destination(graph, lane, destination.index), number, far);
        }
    }
}

// The passes; lower.cpp says what each does.

/// Builds nodes, connections and keys from steps. `forward` reads through opening copies; `modes` chooses put
/// and get.
Graph extract(const ir::Algorithm& algorithm, const LowerOptions& options, bool forward, bool modes);
/// Removes copies, or the parts of copies, whose result nobody reads and that do not last to the end.
void remove_dead_copies(Graph& graph);
/// Merges producers into consumers and leaves out stores that became unneeded. `k_way` allows merging
/// reductions.
void fuse(Graph& graph, const LowerOptions& options, bool k_way);
/// Gives every node its threadblock and every lane its slots and final channel.
void assign_threadblocks(Graph& graph, const LowerOptions& options, bool within_budget);
/// The graph as a Program, with every need spelled out. `order` receives (rank, threadblock, instruction) in
/// key order.
struct Location {
    std::int32_t rank = 0, threadblock = 0, instruction = 0;
};
ir::Program to_program(const Graph& graph, std::vector<Location>& order);
/// Drops needs that sequence, messages or earlier needs imply.
void minimize_waits(ir::Program& program, const std::vector<Location>& order);
/// Marks repeated bodies.
void reroll(ir::Program& program);

}  // namespace baton::codegen
