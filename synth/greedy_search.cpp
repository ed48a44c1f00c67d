#include <baton/synth/greedy_search.hpp>

#include <baton/base/error.hpp>
#include <baton/base/stop.hpp>

#include <algorithm>
#include <bit>
#include <map>
#include <queue>

namespace baton::synth {
namespace {

constexpr int kSamples = 6;             // chunks that are looked at where there are many
constexpr std::int64_t kFewWords = 16;  // up to so many words of chunks, all are looked at
constexpr std::int64_t kMostTime = INT64_MAX / 4;

// SplitMix64: small, and the same everywhere.
class SeededBits {
public:
    explicit SeededBits(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 0x632be59bd9b4e019ULL) {}
    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }
    /// 0 .. count-1.
    std::uint32_t below(std::uint32_t count) {
        return static_cast<std::uint32_t>(((next() >> 32) * count) >> 32);
    }

private:
    std::uint64_t state_;
};

class Matching {
public:
    Matching(const GreedyNetwork& network, const GreedyDemand& demand, const GreedySearchOptions& options)
        : network_(network),
          demand_(demand),
          lack_(demand.lack),
          have_(network.ranks(), demand.chunks()),
          holders_(demand.source.size(), 1),
          random_(options.seed),
          deliveries_(demand.deliveries) {
        const std::size_t edges = network.edges().size();
        dry_.assign(edges, 0);
        stirred_.assign(edges, 0);
        free_at_.assign(at(network.resources()), 0);
        if (have_.words() <= kFewWords || !demand.hops.empty()) samples_ = INT32_MAX;
        // With one destination each, the chunk with most hops to go counts as the one that fewest ranks own.
        for (std::size_t c = 0; c < demand.hops.size(); ++c)
            holders_[c] = static_cast<std::uint32_t>(network.ranks()) - demand.hops[c];
        prepare_durations(options.bytes);
        if (!demand.ways.empty())
            allowed_ = &demand.ways;
        else if (options.only_shortest)
            find_shortest();
        if (options.once_per_host) prepare_hosts(demand);
        closed_.assign(edges, 0);
        if (options.hosts_in_line) close_shortcuts();
        for (std::int64_t c = 0; c < demand.chunks(); ++c) have_.set(demand.source[at(c)], c);
        schedule_.messages.reserve(at(deliveries_));
    }

    GreedySchedule run() {
        run_from(0);
        if (!complete()) {
            // What the options keep from being used is needed after all, say within a host without links.
            hosts_matter_ = false;
            allowed_ = nullptr;
            std::fill(closed_.begin(), closed_.end(), 0);
            run_from(schedule_.time.picoseconds);
        }
        if (!complete()) throw internal_error("greedy search ended before everything was delivered");
        measure();
        return std::move(schedule_);
    }

private:
    struct Bucket {
        std::vector<GreedyMessage> arrivals;
        std::vector<std::int32_t> freed;
    };

    bool complete() const { return static_cast<std::int64_t>(schedule_.messages.size()) == deliveries_; }

    void run_from(std::int64_t start) {
        std::fill(dry_.begin(), dry_.end(), 0);
        for (std::size_t e = 0; e < dry_.size(); ++e) stir(static_cast<std::int32_t>(e));
        match(start);
        while (!events_.empty()) {
            stop_point();
            const std::int64_t now = events_.begin()->first;
            Bucket bucket = std::move(events_.begin()->second);
            events_.erase(events_.begin());
            for (const GreedyMessage& message : bucket.arrivals) arrive(message);
            if (!bucket.arrivals.empty()) schedule_.time = {now};
            for (const std::int32_t resource : bucket.freed) {
                for (const std::int32_t e : network_.users(resource)) {
                    if (dry_[at(e)] == 0) stir(e);
                }
            }
            match(now);
            bucket.arrivals.clear();
            bucket.freed.clear();
            spare_.push_back(std::move(bucket));
        }
    }

    void prepare_durations(Bytes bytes) {
        std::int64_t longest = 1;
        for (std::size_t e = 0; e < dry_.size(); ++e) {
            for (const GreedyUse& use : network_.uses_of(static_cast<int>(e))) {
                busy_.push_back(greedy_duration(bytes, use.seconds_per_byte, kMostTime));
                longest = std::max(longest, busy_.back());
            }
            const GreedyEdge& edge = network_.edges()[e];
            travel_.push_back(std::min(edge.latency.picoseconds, kMostTime) +
                              greedy_duration(bytes, edge.seconds_per_byte, kMostTime));
            longest = std::max(longest, travel_.back());
        }
        if (static_cast<double>(longest) * static_cast<double>(deliveries_ + 1) >
            static_cast<double>(kMostTime))
            throw input_error("greedy cannot add up times as long as these links take");
    }

    // For each source, the pairs on its ways of least time.
    void find_shortest() {
        shortest_ =
            BitRows(static_cast<std::int64_t>(dry_.size()), static_cast<std::int64_t>(holders_.size()));
        std::vector<std::vector<std::int32_t>> chunks_of(at(network_.ranks()));
        for (std::size_t c = 0; c < holders_.size(); ++c)
            chunks_of[at(demand_.source[c])].push_back(static_cast<std::int32_t>(c));
        std::vector<std::int64_t> distance;
        using Entry = std::pair<std::int64_t, int>;
        for (int source = 0; source < network_.ranks(); ++source) {
            if (chunks_of[at(source)].empty()) continue;
            stop_point();
            distance.assign(at(network_.ranks()), kMostTime);
            distance[at(source)] = 0;
            std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap;
            heap.emplace(0, source);
            while (!heap.empty()) {
                const auto [reached, v] = heap.top();
                heap.pop();
                if (reached > distance[at(v)]) continue;
                for (const std::int32_t e : network_.out(v)) {
                    const std::int64_t next = reached + travel_[at(e)];
                    const int to = network_.edges()[at(e)].to;
                    if (next >= distance[at(to)]) continue;
                    distance[at(to)] = next;
                    heap.emplace(next, to);
                }
            }
            for (std::size_t e = 0; e < dry_.size(); ++e) {
                const GreedyEdge& edge = network_.edges()[e];
                if (distance[at(edge.from)] + travel_[e] > distance[at(edge.to)]) continue;
                for (const std::int32_t c : chunks_of[at(source)])
                    shortest_.set(static_cast<std::int64_t>(e), c);
            }
        }
        allowed_ = &shortest_;
    }

    // What each host as a whole has yet to get: the union of what its ranks lack, less what one of them has.
    void prepare_hosts(const GreedyDemand& demand) {
        int hosts = 0;
        for (const int host : network_.hosts()) hosts = std::max(hosts, host + 1);
        if (hosts <= 1 || hosts == network_.ranks()) return;
        host_lack_ = BitRows(hosts, demand.chunks());
        for (int rank = 0; rank < network_.ranks(); ++rank) {
            const std::uint64_t* lack = lack_.row(rank);
            std::uint64_t* host = host_lack_.row(network_.hosts()[at(rank)]);
            for (std::int64_t w = 0; w < lack_.words(); ++w) host[w] |= lack[w];
        }
        for (std::int64_t c = 0; c < demand.chunks(); ++c)
            host_lack_.clear(network_.hosts()[at(demand.source[at(c)])], c);
        hosts_matter_ = true;
    }

    // To the next host each rank keeps the pair with the rank of equal place there, if there is one.
    void close_shortcuts() {
        std::vector<int> ranks_of, place;
        for (const int host : network_.hosts()) {
            if (at(host) >= ranks_of.size()) ranks_of.resize(at(host) + 1, 0);
            place.push_back(ranks_of[at(host)]++);
        }
        const auto hosts = static_cast<int>(ranks_of.size());
        std::vector<char> on_rail(at(network_.ranks()), 0);
        const auto next = [&](const GreedyEdge& edge) {
            return network_.hosts()[at(edge.to)] == (network_.hosts()[at(edge.from)] + 1) % hosts;
        };
        for (const GreedyEdge& edge : network_.edges()) {
            if (edge.between_hosts && next(edge) && place[at(edge.from)] == place[at(edge.to)])
                on_rail[at(edge.from)] = 1;
        }
        for (std::size_t e = 0; e < closed_.size(); ++e) {
            const GreedyEdge& edge = network_.edges()[e];
            if (!edge.between_hosts) continue;
            const bool aside = on_rail[at(edge.from)] != 0 && place[at(edge.from)] != place[at(edge.to)];
            closed_[e] = aside || !next(edge) ? 1 : 0;
        }
    }

    void stir(std::int32_t edge) {
        if (stirred_[at(edge)] != 0 || closed_[at(edge)] != 0) return;
        stirred_[at(edge)] = 1;
        candidates_.push_back(edge);
    }

    void arrive(const GreedyMessage& message) {
        const int rank = network_.edges()[at(message.edge)].to;
        have_.set(rank, message.chunk);
        for (const std::int32_t e : network_.out(rank)) {
            // Edges that are not dry wait for something to be free and are looked at then.
            if (dry_[at(e)] == 0 || !lack_.test(network_.edges()[at(e)].to, message.chunk)) continue;
            dry_[at(e)] = 0;
            stir(e);
        }
    }

    bool is_free(std::int32_t edge, std::int64_t now) const {
        for (const GreedyUse& use : network_.uses_of(edge)) {
            if (free_at_[at(use.resource)] > now) return false;
        }
        return true;
    }

    // Gives every candidate that is free a chunk, those between hosts first, the others in random order.
    void match(std::int64_t now) {
        std::size_t kept = 0;
        for (const std::int32_t e : candidates_) {
            stirred_[at(e)] = 0;
            if (is_free(e, now)) candidates_[kept++] = e;
        }
        candidates_.resize(kept);
        for (std::size_t i = kept; i > 1; --i)
            std::swap(candidates_[i - 1], candidates_[random_.below(static_cast<std::uint32_t>(i))]);
        if (hosts_matter_)
            std::stable_partition(candidates_.begin(), candidates_.end(),
                                  [&](std::int32_t e) { return network_.edges()[at(e)].between_hosts; });
        for (const std::int32_t e : candidates_) {
            if (!is_free(e, now)) continue;
            const std::int64_t chunk = pick(e);
            if (chunk < 0)
                dry_[at(e)] = 1;
            else
                send(e, static_cast<std::int32_t>(chunk), now);
        }
        candidates_.clear();
    }

    std::int64_t pick(std::int32_t e) {
        const GreedyEdge& edge = network_.edges()[at(e)];
        const std::uint64_t* have = have_.row(edge.from);
        const std::uint64_t* lack = lack_.row(edge.to);
        const std::uint64_t* host =
            hosts_matter_ && edge.between_hosts ? host_lack_.row(network_.hosts()[at(edge.to)]) : lack;
        const std::uint64_t* allowed = allowed_ != nullptr ? allowed_->row(e) : lack;
        const auto words = static_cast<std::uint32_t>(have_.words());
        const std::uint64_t dice = random_.next();
        auto w = static_cast<std::uint32_t>(((dice >> 32) * words) >> 32);
        const auto turn = static_cast<int>(dice & 63);
        std::int64_t best = -1;
        std::uint32_t fewest = UINT32_MAX;
        int samples = 0;
        for (std::uint32_t i = 0; i < words; ++i, w = w + 1 == words ? 0 : w + 1) {
            std::uint64_t bits = have[w] & lack[w] & host[w] & allowed[w];
            if (bits == 0) continue;
            // Starts at a random bit of the word, so that low numbers are not preferred.
            std::uint64_t turned = std::rotr(bits, turn);
            while (turned != 0 && samples < samples_) {
                const int b = std::countr_zero(turned);
                turned &= turned - 1;
                const std::int64_t chunk = std::int64_t{w} * 64 + ((b + turn) & 63);
                ++samples;
                if (holders_[at(chunk)] >= fewest) continue;
                fewest = holders_[at(chunk)];
                best = chunk;
            }
            if (samples == samples_) break;
        }
        return best;
    }

    void send(std::int32_t e, std::int32_t chunk, std::int64_t now) {
        const GreedyEdge& edge = network_.edges()[at(e)];
        lack_.clear(edge.to, chunk);
        if (hosts_matter_) host_lack_.clear(network_.hosts()[at(edge.to)], chunk);
        ++holders_[at(chunk)];
        std::size_t u = at(edge.first_use);
        for (const GreedyUse& use : network_.uses_of(e)) {
            const std::int64_t until = now + busy_[u++];
            free_at_[at(use.resource)] = until;
            bucket(until).freed.push_back(use.resource);
        }
        bucket(now + travel_[at(e)]).arrivals.push_back({e, chunk});
        schedule_.messages.push_back({e, chunk});
    }

    Bucket& bucket(std::int64_t time) {
        const auto place = events_.lower_bound(time);
        if (place != events_.end() && place->first == time) return place->second;
        Bucket made;
        if (!spare_.empty()) {
            made = std::move(spare_.back());
            spare_.pop_back();
        }
        return events_.emplace_hint(place, time, std::move(made))->second;
    }

    void measure() {
        std::vector<std::int64_t> total(free_at_.size(), 0);
        for (const GreedyMessage& message : schedule_.messages) {
            std::size_t u = at(network_.edges()[at(message.edge)].first_use);
            for (const GreedyUse& use : network_.uses_of(message.edge)) total[at(use.resource)] += busy_[u++];
        }
        for (const std::int64_t sum : total) schedule_.busiest = std::max(schedule_.busiest, Time{sum});
        std::size_t bytes =
            lack_.bytes() + have_.bytes() + host_lack_.bytes() + shortest_.bytes() + demand_.ways.bytes();
        bytes +=
            holders_.size() * 4 + dry_.size() * 3 + (busy_.size() + travel_.size() + free_at_.size()) * 8;
        for (const Bucket& bucket : spare_)
            bytes += bucket.arrivals.capacity() * sizeof(GreedyMessage) + bucket.freed.capacity() * 4;
        schedule_.state_bytes = bytes + candidates_.capacity() * 4;
    }

    const GreedyNetwork& network_;
    const GreedyDemand& demand_;
    BitRows lack_, have_, host_lack_, shortest_;
    const BitRows* allowed_ = nullptr;    // [edge][chunk]; null: all
    std::vector<std::uint32_t> holders_;  // [chunk]: ranks that have it or will have it
    std::vector<char> dry_;               // [edge]: free, but found nothing to send
    std::vector<char> closed_;            // [edge]: not used
    std::vector<char> stirred_;
    std::vector<std::int64_t> busy_, travel_, free_at_;  // [use], [edge], [resource]
    std::vector<std::int32_t> candidates_;
    std::map<std::int64_t, Bucket> events_;
    std::vector<Bucket> spare_;
    SeededBits random_;
    std::int64_t deliveries_;
    int samples_ = kSamples;
    bool hosts_matter_ = false;
    GreedySchedule schedule_;
};

}  // namespace

Time discrete_bound(const GreedyNetwork& network, const GreedyDemand& demand, Bytes bytes,
                    bool latency_occupies) {
    const auto served = [&](int rank, std::int64_t time, std::int64_t needed) {
        std::int64_t sum = 0;
        for (const std::int32_t e : network.in(rank)) {
            const GreedyEdge& edge = network.edges()[at(e)];
            const std::int64_t latency = std::min(edge.latency.picoseconds, kMostTime);
            const std::int64_t busy = greedy_duration(bytes, edge.seconds_per_byte, kMostTime);
            const std::int64_t each = busy + (latency_occupies ? latency : 0);
            const std::int64_t rest = time - (latency_occupies ? 0 : latency);
            if (rest < 0) continue;
            sum += each == 0 ? needed : std::min(needed, rest / each);
            if (sum >= needed) return true;
        }
        return false;
    };
    std::int64_t least = 0;
    for (int rank = 0; rank < network.ranks(); ++rank) {
        std::int64_t needed = 0;
        for (std::int64_t w = 0; w < demand.lack.words(); ++w)
            needed += std::popcount(demand.lack.row(rank)[w]);
        if (needed == 0 || served(rank, least, needed)) continue;
        std::int64_t low = least, high = kMostTime;  // not served, taken as served
        while (high - low > 1) {
            const std::int64_t middle = low + (high - low) / 2;
            (served(rank, middle, needed) ? high : low) = middle;
        }
        least = high;
    }
    return {least};
}

GreedySchedule greedy_search(const GreedyNetwork& network, const GreedyDemand& demand,
                             const GreedySearchOptions& options) {
    return Matching(network, demand, options).run();
}

}  // namespace baton::synth
