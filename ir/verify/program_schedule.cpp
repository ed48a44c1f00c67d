#include <baton/ir/verify/program_schedule.hpp>

#include <fmt/format.h>

namespace baton::ir::checks {
namespace {

// Runs threadblocks until each is finished or waits; a waiting threadblock hangs on the one it waits for.
class Runner {
public:
    Runner(const ProgramGraph& graph, const std::vector<int>& slots, std::int64_t tiles)
        : graph_(graph),
          slots_(slots),
          tiles_(tiles),
          done_(graph.blocks.size()),
          first_waiter_(graph.blocks.size(), -1),
          next_waiter_(graph.blocks.size(), -1),
          wait_until_(graph.blocks.size()),
          nearest_(graph.blocks.size(), kNever),
          sent_(graph.ends.size()),
          received_(graph.ends.size()) {}

    ScheduleResult run(bool record_order) {
        ScheduleResult result;
        std::int64_t total = 0;
        for (std::size_t b = graph_.blocks.size(); b-- > 0;) {
            if (graph_.blocks[b].size() > 0) ready_.push_back(static_cast<std::int32_t>(b));
            total += graph_.blocks[b].size();
        }
        if (record_order) result.order.reserve(static_cast<std::size_t>(total));
        while (!ready_.empty()) {
            const std::int32_t block = ready_.back();
            ready_.pop_back();
            advance(block, record_order ? &result.order : nullptr);
        }
        for (std::size_t b = 0; b < graph_.blocks.size(); ++b) {
            if (done_[b] < graph_.blocks[b].size() * tiles_) {
                result.cycle = cycle(static_cast<std::int32_t>(b));
                return result;
            }
        }
        result.complete = true;
        return result;
    }

private:
    static constexpr std::int64_t kNever = INT64_MAX;

    struct Wait {
        WaitReason reason = WaitReason::need;
        Site site;
        int connection = -1;
        std::int64_t position = 0;  // of `site`, over all tiles
    };

    // The first unmet wait of a threadblock's next instruction.
    bool blocked(std::int32_t block, Wait& wait) const {
        const std::int64_t size = graph_.blocks[block].size();
        const std::int64_t tile = done_[block] / size;
        const Site site{block, static_cast<std::int32_t>(done_[block] % size)};
        const auto k_of = [&](int connection, bool send) {
            const auto messages = static_cast<std::int64_t>(graph_.ends[connection].sends.size());
            return (send ? sent_[connection] : received_[connection]) % messages;
        };
        return !visit_waits(graph_, site, slots_, k_of,
                            [&](WaitReason reason, Site other, int connection, std::int64_t back) {
                                if (back > tile) return true;
                                const std::int64_t position =
                                    (tile - back) * graph_.blocks[other.block].size() + other.instruction;
                                if (done_[other.block] > position) return true;
                                wait = {reason, other, connection, position};
                                return false;
                            });
    }

    void advance(std::int32_t block, std::vector<Site>* order) {
        const std::int64_t size = graph_.blocks[block].size();
        Wait wait;
        while (done_[block] < size * tiles_) {
            if (blocked(block, wait)) {
                wait_until_[block] = wait.position;
                next_waiter_[block] = first_waiter_[wait.site.block];
                first_waiter_[wait.site.block] = block;
                nearest_[wait.site.block] = std::min(nearest_[wait.site.block], wait.position);
                return;
            }
            const Site site{block, static_cast<std::int32_t>(done_[block] % size)};
            const Instruction& instruction = graph_.at(site);
            for (const Operand& source : graph_.code(site).sources(instruction)) {
                if (source.kind == OperandKind::message) ++received_[source.target];
            }
            for (const Operand& destination : graph_.code(site).destinations(instruction)) {
                if (destination.kind == OperandKind::message) ++sent_[destination.target];
            }
            if (order != nullptr) order->push_back(site);
            ++done_[block];
            if (done_[block] > nearest_[block]) wake(block);
        }
    }

    void wake(std::int32_t block) {
        std::int32_t kept = -1;
        nearest_[block] = kNever;
        for (std::int32_t waiter = first_waiter_[block]; waiter >= 0;) {
            const std::int32_t next = next_waiter_[waiter];
            if (wait_until_[waiter] < done_[block]) {
                ready_.push_back(waiter);
            } else {
                next_waiter_[waiter] = kept;
                kept = waiter;
                nearest_[block] = std::min(nearest_[block], wait_until_[waiter]);
            }
            waiter = next;
        }
        first_waiter_[block] = kept;
    }

    Site current(std::int32_t block) const {
        return {block, static_cast<std::int32_t>(done_[block] % graph_.blocks[block].size())};
    }

    std::string cycle(std::int32_t start) const {
        std::vector<char> seen(graph_.blocks.size());
        Wait wait;
        std::int32_t block = start;
        while (!seen[block]) {
            seen[block] = 1;
            blocked(block, wait);
            block = wait.site.block;
        }
        std::string text;
        const std::int32_t first = block;
        int printed = 0;
        do {
            blocked(block, wait);
            if (++printed <= kPrinted) {
                text += fmt::format("{}{} waits for {}", text.empty() ? "" : "; ",
                                    graph_.name(current(block)), words(wait));
            }
            block = wait.site.block;
        } while (block != first);
        if (printed > kPrinted) text += fmt::format("; and {} more in the cycle", printed - kPrinted);
        return text;
    }

    std::string words(const Wait& wait) const {
        const std::string who = graph_.name(wait.site);
        switch (wait.reason) {
            case WaitReason::need: return "the token of " + who;
            case WaitReason::acknowledgement:
                return fmt::format("the reader of {}, {}", graph_.connection_name(wait.connection), who);
            case WaitReason::message:
                return fmt::format("the message on {} from {}", graph_.connection_name(wait.connection), who);
            case WaitReason::slot:
                return fmt::format("a free slot of {}, freed by {}", graph_.connection_name(wait.connection),
                                   who);
        }
        return who;
    }

    static constexpr int kPrinted = 16;

    const ProgramGraph& graph_;
    const std::vector<int>& slots_;
    const std::int64_t tiles_;
    std::vector<std::int64_t> done_;  // instructions completed, over all tiles
    std::vector<std::int32_t> first_waiter_, next_waiter_;
    std::vector<std::int64_t> wait_until_;       // position a waiting threadblock waits for
    std::vector<std::int64_t> nearest_;          // smallest position that anyone waits for
    std::vector<std::int64_t> sent_, received_;  // messages per connection, over all tiles
    std::vector<std::int32_t> ready_;
};

}  // namespace

ScheduleResult run_schedule(const ProgramGraph& graph, const std::vector<int>& slots, bool record_order,
                            std::int64_t tiles) {
    return Runner(graph, slots, tiles).run(record_order);
}

std::vector<int> slot_counts(const Program& program, int uniform) {
    std::vector<int> slots;
    slots.reserve(program.connections.size());
    for (const Connection& connection : program.connections) {
        slots.push_back(connection.mode != Mode::staged ? 0 : uniform > 0 ? uniform : connection.slots);
    }
    return slots;
}

int smallest_uniform_slots(const ProgramGraph& graph) {
    std::int64_t most = 0;
    for (std::size_t c = 0; c < graph.ends.size(); ++c) {
        if (graph.program->connections[c].mode == Mode::staged) {
            most = std::max(most, static_cast<std::int64_t>(graph.ends[c].sends.size()));
        }
    }
    if (most == 0) return 0;
    std::int64_t low = 1, high = most;  // `most` slots never run out within a tile
    while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        if (run_schedule(graph, slot_counts(*graph.program, static_cast<int>(middle)), false).complete) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return static_cast<int>(low);
}

}  // namespace baton::ir::checks
