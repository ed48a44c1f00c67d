// Max-min fair sharing of capacities among flows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace baton::sim {

/// A flow of rate x takes weight * x of a resource. A message spread over two equal links uses each with
/// weight 1/2.
struct Use {
    int resource = -1;
    double weight = 0;
};

/// Rates of flows that share resources: for every flow some resource is used up on which no flow is faster.
/// These rates are unique; all flows count alike (weight 1 per flow, however its bytes are spread).
///
/// Progressive filling (Bertsekas and Gallager, Data Networks, 6.5.2), restricted to the flows that a change
/// can reach over shared resources. Flows are numbered by the caller. Rates and capacities are in any one
/// unit.
class MaxMin {
public:
    /// `capacities`: of each resource, positive.
    explicit MaxMin(std::vector<double> capacities);

    /// Adds flow `flow` (any number >= 0 that is not active). `uses`: each resource at most once, weights
    /// positive, at least one. The span must stay valid until the flow is removed.
    void add(int flow, std::span<const Use> uses);
    /// Removes an active flow.
    void remove(int flow);
    /// Brings the rates up to date. Returns the flows whose rate changed since the last call, those just
    /// added among them, in a deterministic order. Valid until the next call.
    const std::vector<int>& solve();

    /// Rate of an active flow as of the last `solve`.
    double rate(int flow) const { return flows_[static_cast<std::size_t>(flow)].rate; }
    bool active(int flow) const;
    /// Number of flows on a resource.
    int flows_on(int resource) const {
        return static_cast<int>(members_[static_cast<std::size_t>(resource)].size());
    }
    /// Visits of (flow, resource) pairs so far: a measure of work that does not depend on the machine.
    std::int64_t work() const { return work_; }

private:
    struct Member {
        int flow = -1;
        int use = 0;  // index into the flow's uses
    };
    struct Flow {
        std::span<const Use> uses;
        std::vector<int> places;  // of the flow among the members of each resource that it uses
        double rate = 0;
        std::uint64_t mark = 0;  // of the last component it belonged to
        bool frozen = false;
    };
    struct Level {
        double level = 0;
        int resource = -1;
    };

    void touch(int resource);
    void collect(int resource);
    void fill();
    void freeze(int flow, double level);
    double level_of(int resource) const;

    std::vector<double> capacities_;
    std::vector<std::vector<Member>> members_;
    std::vector<Flow> flows_;
    std::vector<int> dirty_;
    std::vector<char> is_dirty_;
    std::vector<int> changed_;
    std::int64_t work_ = 0;

    // Of one component, kept to reuse memory.
    std::vector<int> component_flows_, component_resources_;
    std::vector<std::uint64_t> resource_mark_;
    std::vector<double> residual_, weight_;
    std::vector<int> unfrozen_;
    std::vector<Level> heap_;
    std::uint64_t mark_ = 0;
};

}  // namespace baton::sim
