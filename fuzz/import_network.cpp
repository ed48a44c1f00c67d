// Networks of simulators and synthesizers: every reader gets every text, so that none relies on recognition.
#include "import_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    for (const char* format :
         {"astra-sim", "simai", "ns3", "htsim", "taccl", "graphml", "simgrid", "tacos-csv", "te-ccl"})
        fuzz_import(format, data, size);
    return 0;
}
