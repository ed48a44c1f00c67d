// Fabrics that are told as a tree of switches above hosts, and hosts in accelerated domains. Readers of such
// files fill a FabricTree; build_fabric makes the topology of it. Internal to the layer.
#pragma once

#include <baton/topologies/import/importer.hpp>

#include <map>
#include <string>
#include <vector>

namespace baton::topologies {

/// A host: one rank, as the files do not tell what is inside.
struct FabricHost {
    std::string name;
    std::string domain;  ///< hosts of one domain share NVLink switches; empty: none
    std::string device;  ///< "GB200"; empty when not said
    std::map<std::string, std::string> attributes;
};

/// A switch and what it is above of, by number.
struct FabricSwitch {
    std::string name;
    std::vector<int> switches, hosts;
    std::string where;  ///< for messages
};

/// Switches and hosts by their names, in the order of their first mention.
class FabricTree {
public:
    std::vector<FabricSwitch> switches;
    std::vector<FabricHost> hosts;

    /// Number of the switch or host of that name; it is added when it is new. Throws an input error at
    /// `where` for a name of the other kind, or beyond the limits of a topology.
    int switch_number(const std::string& name, const std::string& where);
    int host_number(const std::string& name, const std::string& where);
    bool has_switch(const std::string& name) const { return switch_numbers_.count(name) > 0; }
    bool has_host(const std::string& name) const { return host_numbers_.count(name) > 0; }

private:
    void check_name(const std::string& name, const std::map<std::string, int>& others,
                    const std::string& where) const;
    std::map<std::string, int> switch_numbers_, host_numbers_;
};

/// Appends the machine to `result`, finished, with what was assumed: rates of cables and NVLinks, one rank a
/// host, and as many cables from a switch upwards as there are hosts below it. `arch` as in ImportOptions.
/// Throws an input error when a switch is below itself, or there is no host.
void build_fabric(const FabricTree& tree, const std::string& arch, const ImportSource& source,
                  Imported& result);

}  // namespace baton::topologies
