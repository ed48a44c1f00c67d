// The formats that importer.cpp lists, one source each. Internal to the layer.
#pragma once

#include <baton/topologies/import/importer.hpp>

#include <string>
#include <string_view>

namespace baton::topologies {

bool recognizes_edge_list(std::string_view text);
Imported read_edge_list(const ImportSource& source, const ImportOptions& options);
inline constexpr Importer kEdgeListImporter = {
    "edge-list", "lines of FROM TO [RATE [LATENCY]], one link in both directions each", recognizes_edge_list,
    read_edge_list};

bool recognizes_nccl_xml(std::string_view text);
Imported read_nccl_xml(const ImportSource& source, const ImportOptions& options);
inline constexpr Importer kNcclXmlImporter = {
    "nccl-xml", "topology XML of NCCL and RCCL (NCCL_TOPO_DUMP_FILE, or as clouds ship it)",
    recognizes_nccl_xml, read_nccl_xml};

bool recognizes_astra_sim(std::string_view text);
Imported read_astra_sim(const ImportSource& source, const ImportOptions& options);
inline constexpr Importer kAstraSimImporter = {"astra-sim",
                                               "network YAML of ASTRA-sim, and the JSON of its first version",
                                               recognizes_astra_sim, read_astra_sim};

bool recognizes_simai(std::string_view text);
Imported read_simai(const ImportSource& source, const ImportOptions& options);
inline constexpr Importer kSimaiImporter = {
    "simai", "topology text of SimAI: GPUs, NVSwitches, switches and two-way links", recognizes_simai,
    read_simai};

bool recognizes_ns3(std::string_view text);
Imported read_ns3(const ImportSource& source, const ImportOptions& options);
inline constexpr Importer kNs3Importer = {
    "ns3", "topology text of ns-3's RoCE simulators: nodes, switches and two-way links", recognizes_ns3,
    read_ns3};

bool recognizes_htsim(std::string_view text);
Imported read_htsim(const ImportSource& source, const ImportOptions& options);
inline constexpr Importer kHtsimImporter = {
    "htsim", "fat trees of htsim (.topo): nodes, tiers, radixes and bundles", recognizes_htsim, read_htsim};

bool recognizes_taccl(std::string_view text);
Imported read_taccl(const ImportSource& source, const ImportOptions& options);
inline constexpr Importer kTacclImporter = {"taccl", "topology JSON of TACCL: one node and its profile",
                                            recognizes_taccl, read_taccl};

bool recognizes_graphml(std::string_view text);
Imported read_graphml(const ImportSource& source, const ImportOptions& options);
inline constexpr Importer kGraphmlImporter = {
    "graphml", "GraphML: nodes and edges with types, rates and latencies (NetworkX, yEd, Topology Zoo)",
    recognizes_graphml, read_graphml};

bool recognizes_simgrid(std::string_view text);
Imported read_simgrid(const ImportSource& source, const ImportOptions& options);
inline constexpr Importer kSimgridImporter = {
    "simgrid", "platform XML of SimGrid (version 4): zones, routes, clusters, tori, fat trees, dragonflies",
    recognizes_simgrid, read_simgrid};

bool recognizes_tacos_csv(std::string_view text);
Imported read_tacos_csv(const ImportSource& source, const ImportOptions& options);
inline constexpr Importer kTacosCsvImporter = {
    "tacos-csv", "topology CSV of TACOS: the number of NPUs, then Src,Dest,Latency (ns),Bandwidth (GB/s)",
    recognizes_tacos_csv, read_tacos_csv};

bool recognizes_te_ccl(std::string_view text);
Imported read_te_ccl(const ImportSource& source, const ImportOptions& options);
inline constexpr Importer kTeCclImporter = {
    "te-ccl", "input JSON of TE-CCL: one of its machines and the number of chassis", recognizes_te_ccl,
    read_te_ccl};

bool recognizes_ibnetdiscover(std::string_view text);
Imported read_ibnetdiscover(const ImportSource& source, const ImportOptions& options);
inline constexpr Importer kIbnetdiscoverImporter = {
    "ibnetdiscover", "output of ibnetdiscover: switches and channel adapters of an InfiniBand fabric",
    recognizes_ibnetdiscover, read_ibnetdiscover};

bool recognizes_topograph(std::string_view text);
Imported read_topograph(const ImportSource& source, const ImportOptions& options);
inline constexpr Importer kTopographImporter = {
    "topograph", "models of NVIDIA topograph (YAML), and SLURM's topology.conf and topology.yaml",
    recognizes_topograph, read_topograph};

bool recognizes_hwloc(std::string_view text);
Imported read_hwloc(const ImportSource& source, const ImportOptions& options);
inline constexpr Importer kHwlocImporter = {"hwloc", "lstopo's XML of a host (lstopo --of xml)",
                                            recognizes_hwloc, read_hwloc};

bool recognizes_nvidia_smi(std::string_view text);
Imported read_nvidia_smi(const ImportSource& source, const ImportOptions& options);
inline constexpr Importer kNvidiaSmiImporter = {
    "nvidia-smi", "text of nvidia-smi topo -m (--nvlink-status: of nvidia-smi nvlink -s beside it)",
    recognizes_nvidia_smi, read_nvidia_smi};

bool recognizes_rocm_smi(std::string_view text);
Imported read_rocm_smi(const ImportSource& source, const ImportOptions& options);
inline constexpr Importer kRocmSmiImporter = {"rocm-smi", "text of rocm-smi --showtopo (and --shownodesbw)",
                                              recognizes_rocm_smi, read_rocm_smi};

/// A sentence on what the text is when a management tool of GPUs printed it, but not a topology that is read;
/// empty otherwise.
std::string foreign_smi_output(std::string_view text);

/// A sentence on what the text is when it is a file of this field but no machine: "this is ..., the topology
/// is
/// ..."; empty otherwise.
std::string known_other_file(std::string_view text);

}  // namespace baton::topologies
