// Instruction fusion and scratch elision: a value with one producer and one consumer becomes a register of
// one instruction; consecutive reductions into a place become one k-way instruction; a store nobody needs
// goes.
#include <baton/codegen/passes/liveness.hpp>

#include <algorithm>

namespace baton::codegen {
namespace {

class Fuser {
public:
    Fuser(Graph& graph, const LowerOptions& options, bool k_way)
        : graph_(graph),
          aliases_(graph.collective),
          k_way_(k_way),
          slots_(options.slots > 0 ? options.slots : kDefaultSlots),
          order_(ordered(graph)),
          live_(find_values(graph, order_)),
          merged_into_(graph.nodes.size()),
          successors_(graph.nodes.size()) {
        for (std::size_t i = 0; i < merged_into_.size(); ++i) merged_into_[i] = static_cast<std::int32_t>(i);
        Hazards hazards(graph.collective, aliases_);
        for (const std::int32_t number : order_) {
            announce(graph, hazards, number, [&](std::int32_t other, bool) {
                auto& list = successors_[other];
                if (list.empty() || list.back() != number) list.push_back(number);
            });
        }
    }

    void run() {
        for (const std::int32_t consumer : order_) {
            if (graph_.nodes[consumer].dead) continue;
            while (absorb_one(consumer)) {
            }
        }
    }

private:
    std::int32_t find(std::int32_t node) {
        while (merged_into_[node] != node) node = merged_into_[node] = merged_into_[merged_into_[node]];
        return node;
    }

    bool absorb_one(std::int32_t consumer) {
        for (std::size_t i = 0; i < graph_.nodes[consumer].sources.size(); ++i) {
            const std::int32_t value = live_.read[consumer][i];
            if (value < 0) continue;
            const std::int32_t producer = find(live_.values[value].node);
            if (producer == consumer || graph_.nodes[producer].dead) continue;
            const bool copies = graph_.nodes[consumer].sources.size() == 1;
            if (copies ? absorb_by_copy(producer, consumer, value)
                       : absorb_by_reduction(producer, consumer, value, i))
                return true;
        }
        return false;
    }

    bool uses_mode(const std::vector<ir::Operand>& operands, ir::Mode mode) const {
        return std::any_of(operands.begin(), operands.end(), [&](const ir::Operand& operand) {
            return operand.kind == ir::OperandKind::message &&
                   graph_.lanes[operand.target].connection.mode == mode;
        });
    }

    /// An instruction takes or gives at most one message of a connection.
    static bool share_lane(const std::vector<ir::Operand>& a, const std::vector<ir::Operand>& b) {
        return std::any_of(a.begin(), a.end(), [&](const ir::Operand& x) {
            return x.kind == ir::OperandKind::message &&
                   std::any_of(b.begin(), b.end(), [&](const ir::Operand& y) {
                       return y.kind == ir::OperandKind::message && y.target == x.target;
                   });
        });
    }

    /// A put needs its receive to store exactly what arrives, a get its send to publish a place as it stands.
    bool fusible(const Node& producer, const Node& consumer) const {
        return !uses_mode(producer.sources, ir::Mode::put) &&
               !uses_mode(producer.destinations, ir::Mode::get) &&
               !uses_mode(consumer.destinations, ir::Mode::get);
    }

    /// Whether the producer may run as late as the consumer: everything else that must come after it does so.
    bool may_move(std::int32_t producer, std::int32_t consumer) {
        const Key& key = graph_.nodes[consumer].key;
        const auto later = [&](std::int32_t node) {
            node = find(node);
            return node == consumer || node == producer || graph_.nodes[node].key > key;
        };
        for (const std::int32_t successor : successors_[producer]) {
            if (!later(successor)) return false;
        }
        const Node& node = graph_.nodes[producer];
        for (const ir::Operand& operand : node.sources) {
            if (operand.kind != ir::OperandKind::message) continue;
            const Lane& lane = graph_.lanes[operand.target];
            const std::size_t k = operand.index;
            if (k + 1 < lane.receives.size() && !later(lane.receives[k + 1])) return false;
            if (lane.connection.mode == ir::Mode::staged && k + slots_ < lane.sends.size() &&
                !later(lane.sends[k + slots_]))
                return false;
        }
        for (const ir::Operand& operand : node.destinations) {
            if (operand.kind != ir::OperandKind::message) continue;
            const Lane& lane = graph_.lanes[operand.target];
            const std::size_t k = operand.index;
            if (!later(lane.receives[k])) return false;
            if (k + 1 < lane.sends.size() && !later(lane.sends[k + 1])) return false;
        }
        return true;
    }

    /// Element by element, an instruction may store only where it reads the very same place or none of it.
    bool elementwise(int rank, const std::vector<ir::Operand>& sources,
                     const std::vector<ir::Operand>& destinations) const {
        for (const ir::Operand& source : sources) {
            if (source.kind != ir::OperandKind::local) continue;
            for (const Run& a : aliases_.memory(run_of(rank, source))) {
                for (const ir::Operand& destination : destinations) {
                    if (destination.kind != ir::OperandKind::local) continue;
                    const Run b = run_of(rank, destination);
                    if (a.buffer != b.buffer || a.index >= b.index + b.chunks ||
                        b.index >= a.index + a.chunks)
                        continue;
                    if (!(aliases_.memory(run_of(rank, source)) == std::vector<Run>{b})) return false;
                }
            }
        }
        return true;
    }

    void forget_use(std::int32_t value, std::int32_t reader) {
        auto& uses = live_.values[value].uses;
        const auto it = std::find_if(uses.begin(), uses.end(), [&](const StoredValue::Range& use) {
            return use.reader >= 0 && find(use.reader) == reader;
        });
        if (it != uses.end()) uses.erase(it);
    }

    /// consumer: destinations := value. The producer feeds these destinations directly.
    bool absorb_by_copy(std::int32_t producer, std::int32_t consumer, std::int32_t value) {
        Node& from = graph_.nodes[producer];
        Node& into = graph_.nodes[consumer];
        if (into.finalize || !fusible(from, into) || share_lane(from.destinations, into.destinations) ||
            from.destinations.size() + into.destinations.size() >
                static_cast<std::size_t>(kMaxDestinations)) {
            return false;
        }
        if (!elementwise(from.rank, from.sources, into.destinations) || !may_move(producer, consumer))
            return false;
        forget_use(value, consumer);
        into.sources = std::move(from.sources);
        live_.read[consumer] = std::move(live_.read[producer]);
        into.destinations.insert(into.destinations.begin(), from.destinations.begin(),
                                 from.destinations.end());
        auto& made = live_.made[consumer];
        made.insert(made.begin(), live_.made[producer].begin(), live_.made[producer].end());
        into.finalize = from.finalize;
        into.step = from.step;
        bury(producer, consumer);
        drop_unneeded(consumer);
        return true;
    }

    /// consumer: destinations := ... op value op ...; the producer's operands take the place of the value.
    bool absorb_by_reduction(std::int32_t producer, std::int32_t consumer, std::int32_t value,
                             std::size_t position) {
        Node& from = graph_.nodes[producer];
        Node& into = graph_.nodes[consumer];
        if (from.finalize || from.destinations.size() != 1 || !fusible(from, into) ||
            share_lane(from.sources, into.sources)) {
            return false;
        }
        if (from.sources.size() > 1 && (position != 0 || !k_way_)) return false;
        if (from.sources.size() + into.sources.size() - 1 > static_cast<std::size_t>(kMaxSources))
            return false;
        const StoredValue& stored = live_.values[value];
        if (stored.lasts || stored.uses.size() != 1) return false;
        std::vector<ir::Operand> sources = into.sources;
        sources.erase(sources.begin() + static_cast<std::ptrdiff_t>(position));
        sources.insert(sources.begin() + static_cast<std::ptrdiff_t>(position), from.sources.begin(),
                       from.sources.end());
        if (!elementwise(from.rank, sources, into.destinations) || !may_move(producer, consumer))
            return false;
        into.sources = std::move(sources);
        auto& read = live_.read[consumer];
        read.erase(read.begin() + static_cast<std::ptrdiff_t>(position));
        read.insert(read.begin() + static_cast<std::ptrdiff_t>(position), live_.read[producer].begin(),
                    live_.read[producer].end());
        live_.values[value].uses.clear();
        bury(producer, consumer);
        return true;
    }

    /// The producer's messages and duties pass to the consumer.
    void bury(std::int32_t producer, std::int32_t consumer) {
        graph_.nodes[producer].dead = true;
        merged_into_[producer] = consumer;
        for (const ir::Operand& operand : graph_.nodes[consumer].sources) {
            if (operand.kind == ir::OperandKind::message)
                graph_.lanes[operand.target].receives[operand.index] = consumer;
        }
        for (const ir::Operand& operand : graph_.nodes[consumer].destinations) {
            if (operand.kind == ir::OperandKind::message)
                graph_.lanes[operand.target].sends[operand.index] = consumer;
        }
        auto& successors = successors_[consumer];
        successors.insert(successors.end(), successors_[producer].begin(), successors_[producer].end());
        successors_[producer].clear();
    }

    void drop_unneeded(std::int32_t number) {
        Node& node = graph_.nodes[number];
        auto& made = live_.made[number];
        for (std::size_t i = node.destinations.size(); i-- > 0;) {
            if (made[i] < 0 || node.destinations.size() == 1) continue;
            const StoredValue& value = live_.values[made[i]];
            if (value.lasts || !value.uses.empty()) continue;
            node.destinations.erase(node.destinations.begin() + static_cast<std::ptrdiff_t>(i));
            made.erase(made.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }

    Graph& graph_;
    Aliases aliases_;
    bool k_way_;
    std::size_t slots_;
    std::vector<std::int32_t> order_;
    Liveness live_;
    std::vector<std::int32_t> merged_into_;
    std::vector<std::vector<std::int32_t>> successors_;
};

}  // namespace

void fuse(Graph& graph, const LowerOptions& options, bool k_way) { Fuser(graph, options, k_way).run(); }

}  // namespace baton::codegen
