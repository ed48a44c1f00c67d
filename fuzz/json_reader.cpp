// Any bytes: a document or an input error, never anything else; what parses can be read back.
#include <baton/base/json_reader.hpp>

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const auto document = baton::JsonDocument::parse({reinterpret_cast<const char*>(data), size}, "fuzz");
        const baton::JsonReader root = document.root();
        if (root.is_object()) {
            root.only_keys({"a", "b", "name"});
            if (const auto value = root.find("a")) static_cast<void>(value->rate());
        }
    } catch (const baton::Error& error) {
        if (error.kind() != baton::ErrorKind::input) __builtin_trap();
    }
    return 0;
}
