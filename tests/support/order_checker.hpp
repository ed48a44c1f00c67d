// A second opinion on the order within Programs: builds the whole graph of happens-before and looks at every
// pair of accesses to a place. Quadratic, for small Programs, and written apart from the verifier, to judge
// its judgment.
#pragma once

#include <baton/ir/program.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace baton::test {

/// What stands between two instructions: nothing wrong, accesses without order, or waits in a circle.
enum class OrderFault { none, race, deadlock };

class OrderChecker {
public:
    /// `slots` > 0 overrides the depth of every staged connection.
    explicit OrderChecker(const ir::Program& program, int slots = 0) : program_(program), slots_(slots) {
        number();
    }

    OrderFault check() {
        edges(true);
        if (!close()) return OrderFault::deadlock;
        // Slots are no order that a Program may rely on: another call may have more of them.
        edges(false);
        close();
        for (const bool in_place : {false, true}) {
            if (races(in_place)) return OrderFault::race;
        }
        return OrderFault::none;
    }

private:
    struct Site {
        int rank, block, instruction;
    };
    using Place = std::tuple<int, ir::Buffer, std::int64_t>;
    struct Access {
        std::size_t node;
        bool write;
    };

    void number() {
        for (int r = 0; r < static_cast<int>(program_.ranks.size()); ++r) {
            const auto& blocks = program_.ranks[static_cast<std::size_t>(r)].threadblocks;
            for (int b = 0; b < static_cast<int>(blocks.size()); ++b) {
                for (int i = 0; i < static_cast<int>(blocks[static_cast<std::size_t>(b)].instructions.size());
                     ++i) {
                    node_[{r, b, i}] = sites_.size();
                    sites_.push_back({r, b, i});
                    for (const auto& o : code({r, b, i}).sources(at({r, b, i}))) {
                        if (o.kind == ir::OperandKind::message)
                            receives_[o.target].push_back(sites_.size() - 1);
                    }
                    for (const auto& o : code({r, b, i}).destinations(at({r, b, i}))) {
                        if (o.kind == ir::OperandKind::message) sends_[o.target].push_back(sites_.size() - 1);
                    }
                }
            }
        }
    }

    const ir::Threadblock& code(Site s) const {
        return program_.ranks[static_cast<std::size_t>(s.rank)]
            .threadblocks[static_cast<std::size_t>(s.block)];
    }
    const ir::Instruction& at(Site s) const {
        return code(s).instructions[static_cast<std::size_t>(s.instruction)];
    }
    ir::Mode mode(int connection) const {
        return program_.connections[static_cast<std::size_t>(connection)].mode;
    }

    void edges(bool with_slots) {
        after_.assign(sites_.size(), {});
        for (std::size_t n = 0; n < sites_.size(); ++n) {
            const Site s = sites_[n];
            if (s.instruction > 0) after_[node_.at({s.rank, s.block, s.instruction - 1})].push_back(n);
            for (const ir::Need& need : code(s).needs_of(at(s))) {
                const std::size_t needed = node_.at({need.rank, need.threadblock, need.instruction});
                after_[needed].push_back(n);
                if (need.event != ir::Event::source_free) continue;
                for (const auto& [connection, sends] : sends_) {
                    if (mode(connection) != ir::Mode::get) continue;
                    for (std::size_t k = 0; k < sends.size(); ++k) {
                        if (sends[k] == needed) after_[receives_.at(connection).at(k)].push_back(n);
                    }
                }
            }
        }
        for (const auto& [connection, sends] : sends_) {
            const auto& receives = receives_.at(connection);
            const int own = program_.connections[static_cast<std::size_t>(connection)].slots;
            const auto depth = static_cast<std::size_t>(slots_ > 0 ? slots_ : own);
            for (std::size_t k = 0; k < sends.size(); ++k) {
                after_[sends[k]].push_back(receives.at(k));
                if (with_slots && mode(connection) == ir::Mode::staged && k >= depth)
                    after_[receives[k - depth]].push_back(sends[k]);
            }
        }
    }

    /// Transitive closure in topological order; false when the waits form a circle.
    bool close() {
        std::vector<int> missing(sites_.size());
        for (const auto& next : after_) {
            for (const std::size_t n : next) ++missing[n];
        }
        std::vector<std::size_t> order;
        for (std::size_t n = 0; n < sites_.size(); ++n) {
            if (missing[n] == 0) order.push_back(n);
        }
        for (std::size_t i = 0; i < order.size(); ++i) {
            for (const std::size_t n : after_[order[i]]) {
                if (--missing[n] == 0) order.push_back(n);
            }
        }
        if (order.size() < sites_.size()) return false;
        before_.assign(sites_.size(), std::vector<bool>(sites_.size()));
        for (const std::size_t n : order) {
            for (const std::size_t next : after_[n]) {
                before_[next][n] = true;
                for (std::size_t k = 0; k < sites_.size(); ++k) {
                    if (before_[n][k]) before_[next][k] = true;
                }
            }
        }
        return true;
    }

    Place place(int rank, ir::Buffer buffer, std::int64_t index, bool in_place) const {
        if (in_place && buffer == ir::Buffer::input) {
            const std::int64_t shared = program_.collective.output_alias(rank, index);
            if (shared >= 0) return {rank, ir::Buffer::output, shared};
        }
        return {rank, buffer, index};
    }

    bool races(bool in_place) const {
        std::map<Place, std::vector<Access>> accesses;
        std::map<int, std::size_t> sent, received;
        const auto touch = [&](std::size_t node, int rank, const ir::Operand& o, bool write) {
            for (int k = 0; k < o.chunks; ++k)
                accesses[place(rank, o.buffer, o.index + k, in_place)].push_back({node, write});
        };
        for (std::size_t n = 0; n < sites_.size(); ++n) {
            const Site s = sites_[n];
            const auto sources = code(s).sources(at(s)), destinations = code(s).destinations(at(s));
            // Sources are read where they go somewhere now: into memory, a slot or a put. A get only
            // announces them.
            bool used = false, arrived = false;
            for (const auto& o : destinations)
                used |= o.kind != ir::OperandKind::message || mode(o.target) != ir::Mode::get;
            for (const auto& o : sources) {
                if (o.kind == ir::OperandKind::local && used) touch(n, s.rank, o, false);
                if (o.kind == ir::OperandKind::remote && used) touch(n, o.target, o, false);
                if (o.kind != ir::OperandKind::message) continue;
                const std::size_t k = received[o.target]++;
                arrived |= mode(o.target) == ir::Mode::put;
                if (mode(o.target) != ir::Mode::get) continue;
                const Site sender = sites_[sends_.at(o.target).at(k)];
                touch(n, sender.rank, code(sender).sources(at(sender))[0], false);
            }
            for (const auto& o : destinations) {
                if (o.kind == ir::OperandKind::local && !arrived) touch(n, s.rank, o, true);
                if (o.kind == ir::OperandKind::remote) touch(n, o.target, o, true);
                if (o.kind != ir::OperandKind::message) continue;
                const std::size_t k = sent[o.target]++;
                if (mode(o.target) != ir::Mode::put) continue;
                const Site receiver = sites_[receives_.at(o.target).at(k)];
                touch(n, receiver.rank, code(receiver).destinations(at(receiver))[0], true);
            }
        }
        for (const auto& [where, list] : accesses) {
            for (const Access& a : list) {
                for (const Access& b : list) {
                    if (a.node < b.node && (a.write || b.write) && !before_[a.node][b.node] &&
                        !before_[b.node][a.node])
                        return true;
                }
            }
        }
        return false;
    }

    const ir::Program& program_;
    int slots_;
    std::vector<Site> sites_;
    std::map<std::tuple<int, int, int>, std::size_t> node_;
    std::map<int, std::vector<std::size_t>> sends_, receives_;
    std::vector<std::vector<std::size_t>> after_;
    std::vector<std::vector<bool>> before_;
};

}  // namespace baton::test
