// The machine that a command works on: TOPO with failed and slowed parts.
#pragma once

#include <baton/topologies/topology.hpp>

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace baton::cli {

/// TOPO, --without and --degrade.
struct MachineOptions {
    std::string spec;  ///< a topology file, a preset with parameters, or a generator
    std::vector<std::string> without, degrade;

    void declare(CLI::App& app);
    /// The machine with all changes made, in the order without, degrade; its name tells them. Throws what
    /// topologies::load, fail and degrade throw.
    topologies::Topology load() const;
    /// TOPO and the changes, as they go behind a command: " dgx1_v100 --without 'gpu0<>gpu4'".
    std::string as_typed() const;
};

/// "LINK=FACTOR" apart, the factor within (0, 1]. Throws an input error that names --degrade.
std::pair<std::string, double> parse_degrade(const std::string& text);

}  // namespace baton::cli
