// The simulation of an algorithm written down as plainly as possible, in real numbers and with no regard for
// speed: an oracle for the engine.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/topologies/routes.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace baton::test {

class NaiveSimulator {
public:
    NaiveSimulator(const topologies::Topology& topology, const ir::Algorithm& algorithm, std::int64_t shard,
                   int tiles)
        : topology_(topology),
          collective_(algorithm.collective),
          partition_(algorithm.collective, shard, 16),
          routes_(topology),
          tiles_(tiles) {
        steps_ = ir::expand(algorithm);
        list_places();
        for (int t = 0; t < tiles; ++t) {
            for (std::size_t s = 0; s < steps_.size(); ++s) operations_.push_back(make(s, t));
        }
    }

    /// Seconds until the last commit; `link_bytes` gets what crossed each link.
    double run(std::vector<double>* link_bytes = nullptr) {
        double now = 0;
        for (;;) {
            while (act(now)) {
            }
            set_rates();
            double next = 1e300;
            for (const Operation& o : operations_) {
                if (o.state == State::sending) next = std::min(next, now + o.remaining / o.rate);
                if (o.state == State::flying) next = std::min(next, o.arrival);
            }
            if (next == 1e300) break;
            for (Operation& o : operations_) {
                if (o.state != State::sending) continue;
                o.remaining -= o.rate * (next - now);
                if (o.remaining <= 1e-9 * static_cast<double>(o.bytes)) o.remaining = 0;
            }
            now = next;
        }
        for (const Operation& o : operations_) {
            if (o.state != State::committed) return -1;
        }
        if (link_bytes) {
            link_bytes->assign(topology_.links.size(), 0);
            for (const Operation& o : operations_) {
                if (!o.route) continue;
                for (const auto& part : o.route->links)
                    (*link_bytes)[static_cast<std::size_t>(part.link)] +=
                        part.share * static_cast<double>(o.bytes);
            }
        }
        return now;
    }

private:
    enum class State { waiting, sending, flying, arrived, committed };
    using Place = std::tuple<int, int, std::int64_t>;  // rank, buffer, index; aliased inputs are outputs
    struct Access {
        std::set<Place> reads, writes;
        int block = 0;  // par block or step
    };
    struct Operation {
        std::size_t step = 0;
        int tile = 0;
        std::int64_t bytes = 0;
        const topologies::Route* route = nullptr;  // null on one rank
        State state = State::waiting;
        double remaining = 0, rate = 0, arrival = 0;
        bool sent = false;
    };

    Place place(int rank, ir::Buffer buffer, std::int64_t index) const {
        if (buffer == ir::Buffer::input) {
            const std::int64_t alias = collective_.output_alias(rank, index);
            if (alias >= 0) return {rank, static_cast<int>(ir::Buffer::output), alias};
        }
        return {rank, static_cast<int>(buffer), index};
    }

    void list_places() {
        int block = -1;
        std::map<Place, std::int64_t> scratch_class;
        std::vector<std::pair<Place, std::int64_t>> later;  // writes of a block change classes at its end
        for (const ir::Step& step : steps_) {
            if (!step.par) {
                ++block;
                for (const auto& [where, chunk_class] : later) scratch_class[where] = chunk_class;
                later.clear();
            }
            Access access;
            access.block = block;
            std::vector<std::int64_t> classes;
            for (int i = 0; i < step.chunks; ++i) {
                const Place source{step.src_rank, static_cast<int>(step.src_buffer), step.src_index + i};
                classes.push_back(
                    step.src_buffer == ir::Buffer::scratch
                        ? scratch_class.at(source)
                        : collective_.class_of(step.src_rank, step.src_buffer, step.src_index + i));
                access.reads.insert(place(step.src_rank, step.src_buffer, step.src_index + i));
                access.writes.insert(place(step.dst_rank, step.dst_buffer, step.dst_index + i));
                later.push_back(
                    {{step.dst_rank, static_cast<int>(step.dst_buffer), step.dst_index + i}, classes.back()});
            }
            accesses_.push_back(std::move(access));
            classes_.push_back(std::move(classes));
        }
    }

    Operation make(std::size_t s, int tile) {
        Operation o;
        o.step = s;
        o.tile = tile;
        const ir::Step& step = steps_[s];
        for (const std::int64_t k : classes_[s]) o.bytes += partition_.tile_range(k, tile, tiles_).size();
        if (step.src_rank != step.dst_rank) o.route = &routes_.between(step.src_rank, step.dst_rank);
        return o;
    }

    static bool meet(const std::set<Place>& a, const std::set<Place>& b) {
        return std::any_of(a.begin(), a.end(), [&](const Place& p) { return b.count(p) > 0; });
    }
    Operation& same_tile(const Operation& o, std::size_t step) {
        return operations_[static_cast<std::size_t>(o.tile) * steps_.size() + step];
    }

    bool may_start(const Operation& o) {
        const Access& own = accesses_[o.step];
        for (std::size_t s = 0; s < o.step; ++s) {
            if (accesses_[s].block == own.block || !meet(accesses_[s].writes, own.reads)) continue;
            if (same_tile(o, s).state != State::committed) return false;
        }
        return true;
    }
    bool may_commit(const Operation& o) {
        const Access& own = accesses_[o.step];
        for (std::size_t s = 0; s < steps_.size(); ++s) {
            if (s == o.step) continue;
            const Operation& other = same_tile(o, s);
            if (s < o.step && meet(accesses_[s].writes, own.writes) && other.state != State::committed)
                return false;
            const bool reads_before = s < o.step || accesses_[s].block == own.block;
            if (reads_before && meet(accesses_[s].reads, own.writes) && !other.sent) return false;
        }
        return true;
    }
    bool lane_busy(const Operation& o) const {
        return std::any_of(operations_.begin(), operations_.end(), [&](const Operation& other) {
            return other.state == State::sending && lane(other) == lane(o);
        });
    }
    std::tuple<int, int, int> lane(const Operation& o) const {
        const ir::Step& step = steps_[o.step];
        return {step.src_rank, step.dst_rank, std::max<int>(0, step.channel)};
    }

    /// One thing that can be done now; false when there is none. Lanes start only when nothing else is left
    /// to do.
    bool act(double now) {
        for (Operation& o : operations_) {
            if (o.state == State::sending && o.remaining == 0) {
                o.sent = true;
                o.state = State::flying;
                o.arrival = now + o.route->latency.seconds();
                return true;
            }
            if (o.state == State::flying && o.arrival <= now + 1e-15) {
                o.state = State::arrived;
                return true;
            }
            if (o.state == State::arrived && may_commit(o)) {
                o.state = State::committed;
                return true;
            }
            if (o.state == State::waiting && !o.route && may_start(o)) {
                o.sent = true;
                o.state = State::arrived;
                return true;
            }
        }
        for (Operation& o : operations_) {  // in order of tile, then position
            if (o.state != State::waiting || !o.route || lane_busy(o) || !may_start(o)) continue;
            o.state = State::sending;
            o.remaining = static_cast<double>(o.bytes);
            return true;
        }
        return false;
    }

    void set_rates() {
        std::vector<Operation*> rising;
        for (Operation& o : operations_) {
            if (o.state == State::sending) rising.push_back(&o);
        }
        std::vector<double> residual;
        for (const auto& link : topology_.links) residual.push_back(link.capacity().value());
        while (!rising.empty()) {
            std::vector<double> weight(residual.size(), 0);
            for (const Operation* o : rising) {
                for (const auto& part : o->route->links)
                    weight[static_cast<std::size_t>(part.link)] += part.share;
            }
            double level = 1e300;
            for (std::size_t l = 0; l < residual.size(); ++l) {
                if (weight[l] > 1e-12) level = std::min(level, residual[l] / weight[l]);
            }
            std::vector<Operation*> still;
            for (Operation* o : rising) {
                const bool full =
                    std::any_of(o->route->links.begin(), o->route->links.end(), [&](const auto& part) {
                        const auto l = static_cast<std::size_t>(part.link);
                        return weight[l] > 1e-12 && residual[l] / weight[l] <= level * (1 + 1e-10);
                    });
                if (full)
                    o->rate = level;
                else
                    still.push_back(o);
            }
            for (const Operation* o : rising) {
                if (std::find(still.begin(), still.end(), o) != still.end()) continue;
                for (const auto& part : o->route->links)
                    residual[static_cast<std::size_t>(part.link)] -= part.share * level;
            }
            rising = std::move(still);
        }
    }

    const topologies::Topology& topology_;
    const ir::Collective& collective_;
    ir::Partition partition_;
    topologies::Routes routes_;
    int tiles_;
    std::vector<ir::Step> steps_;
    std::vector<Access> accesses_;
    std::vector<std::vector<std::int64_t>> classes_;
    std::vector<Operation> operations_;
};

}  // namespace baton::test
