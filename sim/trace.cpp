#include <baton/sim/trace.hpp>

#include <baton/base/index.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

namespace baton::sim {
namespace {

std::string quoted(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string microseconds(Time time) {
    return fmt::format("{}.{:06}", time.picoseconds / 1'000'000, time.picoseconds % 1'000'000);
}

/// Writes events one a line.
class Writer {
public:
    explicit Writer(const std::string& name) {
        text_ =
            fmt::format("{{\"displayTimeUnit\": \"ns\", \"otherData\": {{\"name\": {}}}, \"traceEvents\": [",
                        quoted(name));
    }
    void process(int pid, const std::string& name, int order) {
        line("{{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": {}, \"args\": {{\"name\": {}}}}}", pid,
             quoted(name));
        line(
            "{{\"ph\": \"M\", \"name\": \"process_sort_index\", \"pid\": {}, \"args\": {{\"sort_index\": "
            "{}}}}}",
            pid, order);
    }
    void track(int pid, int tid, const std::string& name) {
        line(
            "{{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": {}, \"tid\": {}, \"args\": {{\"name\": "
            "{}}}}}",
            pid, tid, quoted(name));
    }
    void slice(int pid, int tid, const std::string& name, Time begin, Time end,
               const std::string& arguments) {
        line(
            "{{\"ph\": \"X\", \"name\": {}, \"pid\": {}, \"tid\": {}, \"ts\": {}, \"dur\": {}, \"args\": "
            "{{{}}}}}",
            quoted(name), pid, tid, microseconds(begin), microseconds(end - begin), arguments);
    }
    std::string finish() { return std::move(text_) + "\n]}\n"; }

private:
    template <class... Arguments>
    void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        text_ += first_ ? "\n" : ",\n";
        first_ = false;
        fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
    }
    std::string text_;
    bool first_ = true;
};

bool on_switch(ir::StepOp op) { return op == ir::StepOp::multicast || op == ir::StepOp::switch_reduce; }

/// What a lane of a rank is called; tracks of a rank are in this order.
using Lane = std::tuple<bool, std::int32_t, std::int32_t, bool>;  // to others, destination, channel, switch

Lane lane_of(const TraceEvent& event) {
    const bool crosses = event.source != event.destination || on_switch(event.op);
    return {crosses, crosses ? event.destination : 0, crosses ? event.channel : 0, on_switch(event.op)};
}

std::string lane_name(const Lane& lane) {
    const auto& [crosses, destination, channel, through_switch] = lane;
    if (!crosses) return "on the rank";
    return fmt::format("to {} {}, channel {}", through_switch ? "switch group" : "rank", destination,
                       channel);
}

}  // namespace

std::string chrome_trace(const topologies::Topology& topology, const std::string& name,
                         const SimulationResult& result) {
    Writer writer(name);
    std::map<std::pair<std::int32_t, Lane>, int> tracks;  // a track of a rank, numbered within the rank
    for (const TraceEvent& event : result.trace) tracks.emplace(std::pair(event.source, lane_of(event)), 0);
    int last_rank = -1, next = 0;
    for (auto& [key, tid] : tracks) {
        const int pid = key.first + 1;
        if (key.first != last_rank) {
            const int node = topology.rank_nodes[at(key.first)];
            writer.process(pid, fmt::format("rank {} ({})", key.first, topology.nodes[at(node)].id), pid);
            last_rank = key.first;
            next = 0;
        }
        tid = next++;
        writer.track(pid, tid, lane_name(key.second));
    }
    for (const TraceEvent& event : result.trace) {
        writer.slice(event.source + 1, tracks.at({event.source, lane_of(event)}),
                     fmt::format("{} step {} tile {}", ir::to_string(event.op), event.step, event.tile),
                     event.start, event.left,
                     fmt::format("\"bytes\": {}, \"arrived_us\": {}, \"committed_us\": {}", event.bytes,
                                 microseconds(event.arrived), microseconds(event.committed)));
    }
    if (result.busy_periods.empty()) return writer.finish();
    writer.process(0, "network", topology.rank_count() + 1);
    const int links = static_cast<int>(topology.links.size());
    const auto id = [&](int resource) {
        return resource < links ? topology.links[at(resource)].id : topology.limits[at(resource - links)].id;
    };
    std::vector<BusyPeriod> periods = result.busy_periods;
    std::stable_sort(periods.begin(), periods.end(), [](const BusyPeriod& a, const BusyPeriod& b) {
        return a.resource != b.resource ? a.resource < b.resource : a.begin < b.begin;
    });
    for (std::size_t p = 0; p < periods.size(); ++p) {
        const int resource = periods[p].resource;
        if (p == 0 || periods[p - 1].resource != resource) writer.track(0, resource, id(resource));
        writer.slice(0, resource, id(resource), periods[p].begin, periods[p].end, "");
    }
    return writer.finish();
}

}  // namespace baton::sim
