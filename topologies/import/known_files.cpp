// Files of the field that are no machine, and what to give instead.
#include <baton/topologies/import/formats.hpp>

namespace baton::topologies {

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
    if (has("out-of-place") && has("busbw")) return "this is a log of nccl-tests, which describes no machine";
    if (!recognizes_rocm_smi(text) && !recognizes_nvidia_smi(text)) return foreign_smi_output(text);
    return {};
}

}  // namespace baton::topologies
