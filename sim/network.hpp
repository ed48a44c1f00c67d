// The one interface of the network models: messages in, completion times out.
#pragma once

#include <baton/base/quantities.hpp>
#include <baton/sim/event_queue.hpp>
#include <baton/sim/max_min.hpp>
#include <baton/topologies/routes.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace baton::sim {

/// How messages share the network.
enum class Model : std::uint8_t {
    alpha_beta,  ///< every message as if it were alone: no contention
    flow,        ///< max-min fair sharing of every link and every joint limit
};
std::string_view to_string(Model model);
/// Throws an input error that lists the models.
Model parse_model(std::string_view name);

/// A route as the models see it. Resources are the topology's links in their order, then its limits.
struct Path {
    std::vector<Use> uses;  ///< sorted by resource; empty when nothing is crossed
    Time latency{};         ///< alpha: from the last byte leaving to the last byte arriving
    double alone = 0;       ///< bytes per picosecond of a message that has the network for itself
    /// The uses that can hold it back beside the other paths of a run (`find_binding_uses`); empty: all.
    std::vector<Use> binding;
};

/// Number of resources of a topology: links and limits.
int resource_count(const topologies::Topology& topology);
/// Capacity of each resource in bytes per picosecond.
std::vector<double> capacities(const topologies::Topology& topology);
/// The path of a route: shares on links, and the sums of these shares on the limits that hold them.
class PathMaker {
public:
    explicit PathMaker(const topologies::Topology& topology);
    Path operator()(const std::vector<topologies::LinkShare>& links, Time latency) const;

private:
    const topologies::Topology& topology_;
    std::vector<std::vector<int>> limits_of_link_;
};

/// What a resource did during a run.
struct ResourceUse {
    double bytes = 0;
    Time busy{};  ///< time during which at least one message was crossing
};

/// A period without a break in which a resource carried messages.
struct BusyPeriod {
    int resource = -1;
    Time begin{}, end{};
};

/// Messages in flight on the wires of a machine. A message is known by its `slot`, a small number that no
/// other message in flight has; `event` is what the model puts into the queue for the moment its last byte
/// leaves.
///
/// Use: `start` messages at a time, then `settle` that time once, before later events are taken from the
/// queue. When the queue gives an event of a message, `left` says whether its last byte has left (the message
/// is then gone) or the event is out of date, because the message slowed down.
class Network {
public:
    Network(const topologies::Topology& topology, EventQueue& queue, std::int64_t period_limit);
    virtual ~Network() = default;
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;

    /// `path` must stay until the message has left. REQUIRES: bytes > 0 and a path with uses.
    void start(int slot, const Path& path, std::int64_t bytes, std::uint64_t event, Time now);
    virtual void settle(Time now) = 0;
    bool left(int slot, Time now);

    const std::vector<ResourceUse>& uses() const { return uses_; }
    const std::vector<BusyPeriod>& busy_periods() const { return periods_; }
    /// What is and what is not modeled, in a sentence.
    virtual std::string in_words() const = 0;
    /// A measure of the work done so far, the same on every machine.
    virtual std::int64_t work() const { return work_; }

protected:
    struct Message {
        const Path* path = nullptr;
        std::int64_t bytes = 0;
        double remaining = 0;          // bytes at `since`
        double rate = 0;               // bytes per picosecond
        Time since{}, finish{};        // `finish` at this rate
        Time scheduled = Time::max();  // the earliest event in the queue
        std::uint64_t event = 0;
    };
    Message& message(int slot) { return messages_[static_cast<std::size_t>(slot)]; }
    /// Sets a message's rate from `now` on and schedules its end.
    void set_rate(int slot, double rate, Time now);
    virtual void enter(int slot) = 0;
    virtual void leave(int slot) = 0;

    EventQueue& queue_;
    std::int64_t work_ = 0;

private:
    std::vector<Message> messages_;
    std::vector<ResourceUse> uses_;
    std::vector<int> crossing_;  // messages on each resource
    std::vector<Time> busy_since_;
    std::vector<BusyPeriod> periods_;
    std::int64_t period_limit_;
};

/// The model of a name. Topology and queue must outlive it.
std::unique_ptr<Network> make_network(Model model, const topologies::Topology& topology, EventQueue& queue,
                                      std::int64_t period_limit = 0);

}  // namespace baton::sim
