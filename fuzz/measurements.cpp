// Any text: a log of nccl-tests or an input error; what is read is written as a table.
#include <baton/base/error.hpp>
#include <baton/sim/measurements.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    static_cast<void>(baton::sim::recognizes_measurements(text));
    try {
        const baton::sim::Measurements log = baton::sim::read_measurements(text, "log");
        if (log.rows.empty() || baton::sim::measurements_csv(log).empty()) __builtin_trap();
    } catch (const baton::Error&) {
    }
    return 0;
}
