// Files of the field that are no machine, and what to give instead.
#include <baton/topologies/import/formats.hpp>

namespace baton::topologies {
namespace {

std::string_view first_line_of(std::string_view text) {
    for (const std::string_view blank : {" ", "\t", "\r", "\n", "\xef\xbb\xbf"})
        while (text.rfind(blank, 0) == 0) text.remove_prefix(blank.size());
    return text.substr(0, text.find('\n'));
}

// "SW     1  1 0xb8599f0300000010 4x HDR - CA    10  1 0x..."
bool is_port_list(std::string_view text) {
    const std::string_view line = first_line_of(text);
    return (line.rfind("SW ", 0) == 0 || line.rfind("CA ", 0) == 0) &&
           line.find(" 0x") != std::string_view::npos && line.find("x ") != std::string_view::npos;
}

bool is_graphviz(std::string_view text) {
    const std::string_view line = first_line_of(text);
    for (const std::string_view word : {"graph", "digraph", "strict graph", "strict digraph"})
        if (line.rfind(word, 0) == 0 && line.find('{') != std::string_view::npos) return true;
    return false;
}

// "0 1 {'bandwidth': 100}"
bool has_braces_of_networkx(std::string_view text) {
    std::string_view line = first_line_of(text);
    while (!text.empty() && line.rfind('#', 0) == 0) {
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos) return false;
        text.remove_prefix(end + 1);
        line = first_line_of(text);
    }
    const std::size_t open = line.find(" {");
    return open != std::string_view::npos && open > 2 && line.find('}') != std::string_view::npos &&
           line.find_first_of("<[\"") > open;
}

}  // namespace

std::string known_other_file(std::string_view text) {
    const std::string_view start = text.substr(0, 4096);
    const auto has = [&](std::string_view mark) { return start.find(mark) != std::string_view::npos; };
    if (has("<graphs"))
        return "this is a graph file of NCCL (rings and trees that it found); the machine is in the file "
               "that "
               "NCCL_TOPO_DUMP_FILE names";
    if (has("_sketch\"") && (has("\"nnodes\"") || has("\"hyperparameters\"")))
        return "this is a communication sketch of TACCL; the machine is in the topology file that stands "
               "beside it "
               "(gpus_per_node, alpha, betas)";
    if (has("-Epoch_Duration\"") && has("-Epochs_Required\""))
        return "this is a schedule that TE-CCL wrote; the machine is in its input (TopologyParams)";
    if (has("\"baton\"") && has("topology/")) return "this is a topology of Baton already; nothing to import";
    for (const char* const kind : {"\"algorithm/", "\"program/", "\"plans/"})
        if (has("\"baton\"") && has(kind))
            return "this is a schedule of Baton already; verify, sim, lower, run and export take it as it is";
    if (text.substr(0, 65536).find(" algbw ") != std::string_view::npos &&
        text.find("busbw") != std::string_view::npos)
        return "this is a log of nccl-tests, which describes no machine; baton import nccl-tests FILE reads "
               "it";
    if (has("==(") && has(")==>") && has("Gbps"))
        return "this is the output of iblinkinfo; the fabric that is read is the output of ibnetdiscover";
    if (is_port_list(start))
        return "this is the list of ports of ibnetdiscover -p; its output without options is read";
    if (is_graphviz(start))
        return "this is a graph of Graphviz, which is not read; write it as GraphML or as an edge list";
    if (has("<topologydiff")) return "these are differences of lstopo's topologies; lstopo --of xml is read";
    if (has_braces_of_networkx(start))
        return "this is an edge list of NetworkX with attributes in braces; write it with write_graphml, or "
               "with write_edgelist and data=[\"bandwidth\"]";
    if (!recognizes_rocm_smi(text) && !recognizes_nvidia_smi(text)) return foreign_smi_output(text);
    return {};
}

}  // namespace baton::topologies
