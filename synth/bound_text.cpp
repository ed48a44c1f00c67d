// Witnesses of bounds in words and as JSON.
#include <baton/base/index.hpp>
#include <baton/synth/bound.hpp>
#include <baton/synth/participants.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace baton::synth {
namespace {

using topologies::Topology;

std::string rank_name(const Topology& topology, int rank) {
    return fmt::format("rank {} ({})", rank, topology.nodes[at(topology.rank_nodes[at(rank)])].id);
}

// "gpu0, gpu1, gpu2 and 5 more".
std::string some_nodes(const Topology& topology, const std::vector<int>& nodes, std::size_t most = 8) {
    std::string text;
    for (std::size_t i = 0; i < nodes.size() && i < most; ++i)
        text += (i == 0 ? "" : ", ") + topology.nodes[at(nodes[i])].id;
    if (nodes.size() > most) text += fmt::format(" and {} more", nodes.size() - most);
    return text;
}

// "8 links of 25GB/s + 2 links of 50GB/s", largest total first.
std::string capacity_sum(const Topology& topology, const BandwidthWitness& witness) {
    std::map<std::int64_t, int> links, limits;
    for (const int link : witness.links) ++links[topology.links[at(link)].capacity().bytes_per_second];
    for (const int limit : witness.limits) ++limits[topology.limits[at(limit)].bandwidth.bytes_per_second];
    std::vector<std::pair<double, std::string>> terms;
    const auto add = [&](const std::map<std::int64_t, int>& counts, const char* name) {
        for (const auto& [rate, count] : counts) {
            terms.push_back(
                {static_cast<double>(rate) * count,
                 fmt::format("{} {}{} of {}", count, name, count == 1 ? "" : "s", to_string(Rate{rate}))});
        }
    };
    add(links, "link");
    add(limits, "joint limit");
    std::stable_sort(terms.begin(), terms.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string text;
    for (std::size_t i = 0; i < terms.size() && i < 4; ++i) text += (i == 0 ? "" : " + ") + terms[i].second;
    if (terms.size() > 4) text += fmt::format(" + {} more kinds", terms.size() - 4);
    return text;
}

// "3 (8 links of 25GB/s), 1 (16 links of 50GB/s)", the longest first; links of length 0 are left out.
std::string lengths_in_words(const Topology& topology, const BandwidthWitness& witness) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::pair<int, int>>
        counts;  // (-length, rate): links, limits
    for (std::size_t i = 0; i < witness.links.size(); ++i)
        ++counts[{-witness.link_lengths[i], topology.links[at(witness.links[i])].capacity().bytes_per_second}]
              .first;
    for (std::size_t i = 0; i < witness.limits.size(); ++i)
        ++counts[{-witness.limit_lengths[i],
                  topology.limits[at(witness.limits[i])].bandwidth.bytes_per_second}]
              .second;
    std::string text;
    int terms = 0;
    for (const auto& [key, count] : counts) {
        if (++terms > 4) continue;
        text += fmt::format("{}{} ({} link{} of {})", terms == 1 ? "" : ", ", -key.first,
                            count.first + count.second, count.first + count.second == 1 ? "" : "s",
                            to_string(Rate{key.second}));
    }
    if (terms > 4) text += fmt::format(" and {} more kinds", terms - 4);
    return text;
}

std::string units(const ir::Collective& collective, std::int64_t count) {
    const char* unit = ir::has_shards(collective.kind) ? "shard" : "buffer";
    return fmt::format("{} {}{}", count, unit, count == 1 ? "" : "s");
}

std::string rate_in_words(const Bound& bound) {
    const Rational& rate = bound.bandwidth.seconds_per_byte;
    const Rational per_gigabyte =
        rate.den() % 1'000'000'000 == 0 ? Rational(rate.num(), rate.den() / 1'000'000'000) : Rational(0);
    const std::string exact = per_gigabyte.num() > 0 && per_gigabyte.den() < 1'000'000
                                  ? to_string(per_gigabyte) + " s/GB = "
                                  : std::string();
    return fmt::format("{}{:.6g} s/GB of a {}", exact, rate.value() * 1e9,
                       ir::has_shards(bound.collective.kind) ? "shard" : "buffer");
}

}  // namespace

std::string latency_in_words(const Topology& topology, const Bound& bound) {
    const LatencyBound& latency = bound.latency;
    if (latency.source < 0) return "nothing has to travel";
    std::string way = topology.nodes[at(topology.rank_nodes[at(latency.source)])].id;
    for (std::size_t i = 0; i < latency.links.size(); ++i) {
        if (i >= 5 && i + 5 < latency.links.size()) {
            if (i == 5) way += " > ...";
            continue;
        }
        way += " > " + topology.nodes[at(topology.links[at(latency.links[i])].to)].id;
    }
    std::string text =
        fmt::format("{} from {} to {}: {}", to_string(latency.time), rank_name(topology, latency.source),
                    rank_name(topology, latency.destination), way);
    if (latency.sampled > 0)
        text += latency.sampled == 1 ? std::string(" (one source was searched)")
                                     : fmt::format(" (the farthest of {} searched sources)", latency.sampled);
    return text;
}

std::string bandwidth_in_words(const Topology& topology, const Bound& bound) {
    const BandwidthWitness& witness = bound.bandwidth.witness;
    const std::string rate = to_string(Rate{witness.capacity});
    const std::string need = units(bound.collective, witness.demand);
    switch (witness.kind) {
        case WitnessKind::nothing: return "no data has to move";
        case WitnessKind::cut: {
            std::vector<int> rest;
            for (int v = 0, i = 0; v < static_cast<int>(topology.nodes.size()); ++v) {
                if (at(i) < witness.inside.size() && witness.inside[at(i)] == v)
                    ++i;
                else
                    rest.push_back(v);
            }
            const bool name_rest = rest.size() < witness.inside.size();
            return fmt::format("{}: {} must {} {{{}}} over {} = {}", rate_in_words(bound), need,
                               name_rest ? "enter" : "leave",
                               some_nodes(topology, name_rest ? rest : witness.inside),
                               capacity_sum(topology, witness), rate);
        }
        case WitnessKind::partition: {
            std::size_t largest = 0;
            for (const auto& part : witness.parts) largest = std::max(largest, part.size());
            return fmt::format(
                "{}: {} must {} the {} {} taken together (one out of each but one to combine, one into each "
                "but "
                "one with the result), over {} = {}",
                rate_in_words(bound), need, witness.entering ? "enter" : "leave", witness.parts.size(),
                largest == 1 ? "ranks" : "parts", capacity_sum(topology, witness), rate);
        }
        case WitnessKind::distance:
            return fmt::format("{}: shards must cross links {} times in all, all links together carry {}",
                               rate_in_words(bound), witness.demand, rate);
        case WitnessKind::lengths:
            return fmt::format(
                "{}: with lengths of {}, the shortest ways of all pairs together are to length times rate of "
                "all "
                "links as {} to {}",
                rate_in_words(bound), lengths_in_words(topology, witness), witness.demand, witness.capacity);
    }
    return {};
}

std::string to_json(const Topology& topology, const Bound& bound) {
    using Json = nlohmann::ordered_json;
    const auto link_ids = [&](const std::vector<int>& links) {
        Json list = Json::array();
        for (const int link : links) list.push_back(topology.links[at(link)].id);
        return list;
    };
    const auto node_ids = [&](const std::vector<int>& nodes) {
        Json list = Json::array();
        for (const int node : nodes) list.push_back(topology.nodes[at(node)].id);
        return list;
    };
    Json latency = {{"picoseconds", bound.latency.time.picoseconds}};
    if (bound.latency.source >= 0) {
        latency["from"] = bound.latency.source;
        latency["to"] = bound.latency.destination;
        latency["way"] = link_ids(bound.latency.links);
    }
    latency["sampled"] = bound.latency.sampled > 0;

    const BandwidthWitness& w = bound.bandwidth.witness;
    static constexpr const char* kKinds[] = {"nothing", "cut", "partition", "distance", "lengths"};
    Json witness = {{"kind", kKinds[static_cast<int>(w.kind)]}};
    if (w.kind == WitnessKind::cut) witness["inside"] = node_ids(w.inside);
    if (w.kind == WitnessKind::partition) {
        witness["parts"] = Json::array();
        for (const auto& part : w.parts) witness["parts"].push_back(node_ids(part));
        witness["direction"] = w.entering ? "entering" : "leaving";
    }
    if (w.kind == WitnessKind::lengths) {
        witness["link_lengths"] = w.link_lengths;
        witness["limit_lengths"] = w.limit_lengths;
    }
    if (w.kind == WitnessKind::cut || w.kind == WitnessKind::partition || w.kind == WitnessKind::lengths) {
        witness["links"] = link_ids(w.links);
        Json limits = Json::array();
        for (const int limit : w.limits) limits.push_back(topology.limits[at(limit)].id);
        witness["limits"] = limits;
    }
    witness["units"] = w.demand;
    witness["bytes_per_second"] = w.capacity;
    const Rational& rate = bound.bandwidth.seconds_per_byte;
    Json result = {{"latency", latency},
                   {"bandwidth",
                    {{"unit", ir::has_shards(bound.collective.kind) ? "shard" : "buffer"},
                     {"units_per_buffer", units_per_buffer(bound.collective)},
                     {"seconds_per_byte", to_string(rate)},
                     {"best_cut", bound.bandwidth.best_cut},
                     {"algbw", bound.algbw()},
                     {"witness", witness}}}};
    return result.dump();
}

}  // namespace baton::synth
