// Topology XML of NCCL; the same bytes also stand for the status of NVLinks beside a small file.
#include "import_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz_import("nccl-xml", data, size);
    static constexpr char kBare[] =
        "<system><cpu><pci busid=\"0:1:0.0\" class=\"0x030200\"/><pci busid=\"0:2:0.0\" class=\"0x030200\"/>"
        "</cpu></system>";
    baton::topologies::ImportOptions options;
    options.nvlink_status = {{reinterpret_cast<const char*>(data), size}, "status"};
    if (size > 0 && data[0] != '<')
        fuzz_import("nccl-xml", reinterpret_cast<const std::uint8_t*>(kBare), sizeof(kBare) - 1, options);
    return 0;
}
