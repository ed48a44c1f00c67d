#include <baton/sim/max_min.hpp>

#include <baton/base/index.hpp>

#include <algorithm>
#include <utility>

namespace baton::sim {
namespace {

// Levels this close are one level: sums taken in another order differ in the last bits, and splitting such a
// level would turn one event into thousands.
constexpr double kSameLevel = 1 + 1e-12;

}  // namespace

MaxMin::MaxMin(std::vector<double> capacities)
    : capacities_(std::move(capacities)),
      members_(capacities_.size()),
      is_dirty_(capacities_.size(), 0),
      resource_mark_(capacities_.size(), 0),
      residual_(capacities_.size(), 0),
      weight_(capacities_.size(), 0),
      unfrozen_(capacities_.size(), 0) {}

bool MaxMin::active(int flow) const {
    return flow >= 0 && at(flow) < flows_.size() && !flows_[at(flow)].uses.empty();
}

void MaxMin::touch(int resource) {
    if (is_dirty_[at(resource)]) return;
    is_dirty_[at(resource)] = 1;
    dirty_.push_back(resource);
}

void MaxMin::add(int flow, std::span<const Use> uses) {
    if (at(flow) >= flows_.size()) flows_.resize(at(flow) + 1);
    Flow& added = flows_[at(flow)];
    added.uses = uses;
    added.rate = 0;
    added.places.resize(uses.size());
    for (std::size_t u = 0; u < uses.size(); ++u) {
        std::vector<Member>& members = members_[at(uses[u].resource)];
        added.places[u] = static_cast<int>(members.size());
        members.push_back({flow, static_cast<int>(u)});
        touch(uses[u].resource);
    }
    work_ += static_cast<std::int64_t>(uses.size());
}

void MaxMin::remove(int flow) {
    Flow& removed = flows_[at(flow)];
    for (std::size_t u = 0; u < removed.uses.size(); ++u) {
        const int resource = removed.uses[u].resource;
        std::vector<Member>& members = members_[at(resource)];
        const int place = removed.places[u];
        const Member moved = members.back();
        members[at(place)] = moved;
        flows_[at(moved.flow)].places[at(moved.use)] = place;
        members.pop_back();
        touch(resource);
    }
    work_ += static_cast<std::int64_t>(removed.uses.size());
    removed.uses = {};
    removed.rate = 0;
}

const std::vector<int>& MaxMin::solve() {
    changed_.clear();
    ++mark_;
    for (const int resource : dirty_) {
        if (resource_mark_[at(resource)] != mark_ && !members_[at(resource)].empty()) {
            collect(resource);
            fill();
        }
        is_dirty_[at(resource)] = 0;
    }
    dirty_.clear();
    return changed_;
}

// The flows and resources that hang together with a resource.
void MaxMin::collect(int resource) {
    component_flows_.clear();
    component_resources_.assign(1, resource);
    resource_mark_[at(resource)] = mark_;
    for (std::size_t next = 0; next < component_resources_.size(); ++next) {
        const int here = component_resources_[next];
        for (const Member& member : members_[at(here)]) {
            Flow& flow = flows_[at(member.flow)];
            if (flow.mark == mark_) continue;
            flow.mark = mark_;
            flow.frozen = false;
            component_flows_.push_back(member.flow);
            work_ += static_cast<std::int64_t>(flow.uses.size());
            for (const Use& use : flow.uses) {
                if (resource_mark_[at(use.resource)] == mark_) continue;
                resource_mark_[at(use.resource)] = mark_;
                component_resources_.push_back(use.resource);
            }
        }
    }
}

double MaxMin::level_of(int resource) const {
    return std::max(0.0, residual_[at(resource)]) / weight_[at(resource)];
}

void MaxMin::freeze(int flow, double level) {
    Flow& frozen = flows_[at(flow)];
    frozen.frozen = true;
    for (const Use& use : frozen.uses) {
        residual_[at(use.resource)] -= use.weight * level;
        weight_[at(use.resource)] -= use.weight;
        --unfrozen_[at(use.resource)];
    }
    if (frozen.rate == level) return;
    frozen.rate = level;
    changed_.push_back(flow);
}

void MaxMin::fill() {
    const auto later = [](const Level& a, const Level& b) {
        return a.level != b.level ? a.level > b.level : a.resource > b.resource;
    };
    heap_.clear();
    for (const int resource : component_resources_) {
        residual_[at(resource)] = capacities_[at(resource)];
        double weight = 0;
        for (const Member& member : members_[at(resource)])
            weight += flows_[at(member.flow)].uses[at(member.use)].weight;
        weight_[at(resource)] = weight;
        unfrozen_[at(resource)] = static_cast<int>(members_[at(resource)].size());
        heap_.push_back({level_of(resource), resource});
    }
    std::make_heap(heap_.begin(), heap_.end(), later);
    double level = 0;
    while (!heap_.empty()) {
        std::pop_heap(heap_.begin(), heap_.end(), later);
        const Level least = heap_.back();
        heap_.pop_back();
        if (unfrozen_[at(least.resource)] == 0) continue;
        // Levels only rise while flows freeze, so an old level is a lower limit of the new one.
        const double now = level_of(least.resource);
        if (now > least.level * kSameLevel) {
            heap_.push_back({now, least.resource});
            std::push_heap(heap_.begin(), heap_.end(), later);
            continue;
        }
        if (now > level * kSameLevel) level = now;
        work_ += static_cast<std::int64_t>(members_[at(least.resource)].size());
        for (const Member& member : members_[at(least.resource)]) {
            if (!flows_[at(member.flow)].frozen) freeze(member.flow, level);
        }
    }
}

}  // namespace baton::sim
