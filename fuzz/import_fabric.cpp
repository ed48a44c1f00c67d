// Output of ibnetdiscover.
#include "import_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz_import("ibnetdiscover", data, size);
    return 0;
}
