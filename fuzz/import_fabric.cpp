// Fabrics between hosts: output of ibnetdiscover, models of topograph, SLURM's topologies. Every reader gets
// every text.
#include "import_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    for (const char* format : {"ibnetdiscover", "topograph"}) fuzz_import(format, data, size);
    return 0;
}
