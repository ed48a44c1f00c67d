// Texts of nvidia-smi topo -m and rocm-smi --showtopo; the same bytes also stand for the status of NVLinks.
#include "import_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz_import("nvidia-smi", data, size);
    fuzz_import("rocm-smi", data, size);
    static constexpr char kPair[] = "GPU0 GPU1\nGPU0 X NV2\nGPU1 NV2 X\n";
    baton::topologies::ImportOptions options;
    options.nvlink_status = {{reinterpret_cast<const char*>(data), size}, "status"};
    if (size > 0)
        fuzz_import("nvidia-smi", reinterpret_cast<const std::uint8_t*>(kPair), sizeof(kPair) - 1, options);
    return 0;
}
