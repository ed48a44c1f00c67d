// Options that say which collective: the same for every command that takes a topology.
#pragma once

#include <baton/base/quantities.hpp>
#include <baton/ir/collective.hpp>

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace baton::cli {

/// --collective, --root, --peer, --group and --sizes.
struct CollectiveOptions {
    std::string kind = "all_reduce";
    int root = 0;
    int peer = -1;
    std::vector<std::string> groups;  ///< each a list of ranks, "0-3,8"; empty: one group of all ranks
    std::string sizes = "1KiB..1GiB";

    void declare(CLI::App& app);
    /// The collective on a machine of `ranks` ranks; an input error for a root that is no rank (with groups:
    /// no position of every group), for a root or peer given to a kind without one, and for groups that
    /// overlap or name ranks that are not there.
    ir::Collective collective(int ranks) const;
    /// An input error when an option was given that says another collective than the schedule's. `where`
    /// names the schedule.
    void check_agrees(const ir::Collective& schedule, const std::string& where) const;
    std::vector<Bytes> size_list() const { return parse_sizes(sizes); }
    /// The options that are not at their default, to be put behind a command: " --collective broadcast --root
    /// 3".
    std::string as_typed() const;

private:
    void check_given(const ir::Collective& made) const;

    CLI::Option *kind_given_ = nullptr, *root_given_ = nullptr, *peer_given_ = nullptr,
                *groups_given_ = nullptr;
};

/// "broadcast of 8 ranks, root 3": a collective without what a bound does not depend on.
std::string title(const ir::Collective& collective);

}  // namespace baton::cli
