// Outputs of management tools of GPUs that are no topology, or one of a tool that is not read.
#include <baton/topologies/import/formats.hpp>

namespace baton::topologies {
namespace {

struct ForeignOutput {
    const char* mark;
    const char* also;  // a second mark; empty: none
    const char* what;
};

// The most particular first.
constexpr ForeignOutput kForeignOutputs[] = {
    {"hl-smi", "",
     "this is the output of hl-smi (Gaudi), which prints no matrix of links; write a topology by hand"},
    {"HL-SMI", "",
     "this is the output of hl-smi (Gaudi), which prints no matrix of links; write a topology by hand"},
    {"npu-smi", "", "this is the output of npu-smi (Ascend), whose topology is not read"},
    {"NPU0", "HCCS", "this is the output of npu-smi (Ascend), whose topology is not read"},
    {"xpu-smi", "", "this is the output of xpu-smi (Intel), whose topology is not read"},
    {"mthreads-gmi", "", "this is the output of mthreads-gmi (Moore Threads), whose topology is not read"},
    {"mx-smi", "", "this is the output of mx-smi (MetaX), whose topology is not read"},
    {"cnmon", "", "this is the output of cnmon (Cambricon), whose topology is not read"},
    {"LINK TYPE TABLE", "",
     "this is the output of amd-smi topology; the topology that is read is rocm-smi --showtopo"},
    {"(Topology) Link type between DRM", "",
     "this is the JSON or CSV form of rocm-smi --showtopo; its text is read: leave --json or --csv out"},
    {"Link Type between two GPUs", "",
     "this is the output of rocm-smi --showtopo: baton import rocm-smi FILE reads it"},
    {"ROCm System Management Interface", "",
     "this is the output of rocm-smi, but has no link types; the topology is rocm-smi --showtopo"},
    {"Remote Device",
     "Link 0:", "this is the output of nvidia-smi nvlink -R; the topology is nvidia-smi topo -m"},
    {"Link 0:", "GPU 0:",
     "this is the output of nvidia-smi nvlink -s (rates of NVLinks); the topology is nvidia-smi topo -m, "
     "which takes "
     "this beside it: --nvlink-status FILE"},
    {"GPU 0:", "UUID:", "this is the list of nvidia-smi -L; the topology is nvidia-smi topo -m"},
    {"<nvidia_smi_log>", "", "this is the output of nvidia-smi -q -x; the topology is nvidia-smi topo -m"},
    {"NVSMI LOG", "", "this is the output of nvidia-smi -q; the topology is nvidia-smi topo -m"},
    {"NVIDIA-SMI", "Driver Version",
     "this is the overview of nvidia-smi; the topology is nvidia-smi topo -m"},
    {"CPU Core Affinity", "",
     "this is the output of dcgmi topo; the topology that is read is nvidia-smi topo -m"},
};

}  // namespace

std::string foreign_smi_output(std::string_view text) {
    const std::string_view start = text.substr(0, 65536);
    const auto has = [&](std::string_view mark) { return start.find(mark) != std::string_view::npos; };
    for (const ForeignOutput& known : kForeignOutputs)
        if (has(known.mark) && has(known.also)) return known.what;
    return {};
}

}  // namespace baton::topologies
