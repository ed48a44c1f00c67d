// Any text: a quantity or an input error; what parses prints and parses again.
#include <baton/base/error.hpp>
#include <baton/base/quantities.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        const baton::Bytes bytes = baton::parse_bytes(text);
        if (baton::parse_bytes(baton::to_string(bytes)) != bytes) __builtin_trap();
    } catch (const baton::Error&) {
    }
    try {
        static_cast<void>(baton::to_string(baton::parse_rate(text)));
        static_cast<void>(baton::to_string(baton::parse_time(text)));
        static_cast<void>(baton::parse_sizes(text));
    } catch (const baton::Error&) {
    }
    return 0;
}
