// SLURM's topology.conf and topology.yaml, which topograph writes. Internal to the layer.
#pragma once

#include <baton/base/yaml_reader.hpp>
#include <baton/topologies/import/fabric_tree.hpp>

#include <string_view>

namespace baton::topologies {

/// True when the first line that is no comment names a switch or a block of topology.conf.
bool is_slurm_conf(std::string_view text);

/// Reads topology.conf: SwitchName with Switches and Nodes, BlockName with Nodes. What has no counterpart
/// becomes a warning. Throws an input error with the line.
FabricTree read_slurm_conf(const ImportSource& source, Imported& result);

/// Reads the list of topology.yaml: of several topologies the default one of the cluster, else the first that
/// is a tree or of blocks. Throws an input error with the line.
FabricTree read_slurm_yaml(const YamlReader& root, Imported& result);

}  // namespace baton::topologies
