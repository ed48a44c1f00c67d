#include <baton/sim/link_report.hpp>

#include <baton/base/index.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace baton::sim {
namespace {

std::string csv(const std::string& text) {
    if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + "\"";
}

std::vector<LinkReport> reports(const topologies::Topology& topology, const SimulationResult& result) {
    std::vector<LinkReport> all;
    if (result.outcome != Outcome::finished) return all;
    const double seconds = result.time.seconds();
    const auto add = [&](const std::string& id, const ResourceUse& use, Rate capacity) {
        LinkReport report;
        report.resource = static_cast<int>(all.size());
        report.id = id;
        report.bytes = use.bytes;
        if (seconds > 0) {
            report.busy = use.busy.seconds() / seconds;
            report.utilization = use.bytes / (capacity.value() * seconds);
        }
        all.push_back(std::move(report));
    };
    for (std::size_t l = 0; l < result.links.size(); ++l)
        add(topology.links[l].id, result.links[l], topology.links[l].capacity());
    for (std::size_t l = 0; l < result.limits.size(); ++l)
        add(topology.limits[l].id, result.limits[l], topology.limits[l].bandwidth);
    return all;
}

}  // namespace

std::vector<LinkReport> busiest_links(const topologies::Topology& topology, const SimulationResult& result,
                                      std::size_t count) {
    std::vector<LinkReport> all = reports(topology, result);
    std::stable_sort(all.begin(), all.end(),
                     [](const LinkReport& a, const LinkReport& b) { return a.utilization > b.utilization; });
    all.resize(std::min(count, all.size()));
    return all;
}

std::string link_report_csv(const topologies::Topology& topology,
                            const std::vector<SimulationResult>& results) {
    std::string text =
        "size_bytes,tiles,time_ps,id,type,from,to,kind,capacity_bytes_per_second,bytes,busy_ps,busy,"
        "utilization\n";
    const auto out = std::back_inserter(text);
    const std::size_t links = topology.links.size();
    for (const SimulationResult& result : results) {
        for (const LinkReport& report : reports(topology, result)) {
            fmt::format_to(out, "{},{},{},{},", result.size.count, result.tiles, result.time.picoseconds,
                           csv(report.id));
            const std::size_t r = at(report.resource);
            if (r < links) {
                const topologies::Link& link = topology.links[r];
                fmt::format_to(out, "link,{},{},{},{},{:.0f},{},", csv(topology.nodes[at(link.from)].id),
                               csv(topology.nodes[at(link.to)].id), to_string(link.kind),
                               link.capacity().bytes_per_second, report.bytes,
                               result.links[r].busy.picoseconds);
            } else {
                const topologies::Limit& limit = topology.limits[r - links];
                fmt::format_to(out, "limit,,,,{},{:.0f},{},", limit.bandwidth.bytes_per_second, report.bytes,
                               result.limits[r - links].busy.picoseconds);
            }
            fmt::format_to(out, "{:.6f},{:.6f}\n", report.busy, report.utilization);
        }
    }
    return text;
}

}  // namespace baton::sim
