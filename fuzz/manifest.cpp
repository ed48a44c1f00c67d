// Any bytes: a manifest or an input error. What is read prints and reads back the same; what a launcher
// computes from it (entries, workspace, tiles that fit a slot) is a number or an input error.
#include <baton/base/error.hpp>
#include <baton/codegen/manifest.hpp>
#include <baton/runtime/module.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace {

using namespace baton;

constexpr std::size_t kMostRanks = 256, kMostConnections = 1024;

codegen::Manifest read(std::string_view text, const std::string& name) {
    const JsonDocument document = JsonDocument::parse(text, name);
    return codegen::read_manifest(document.root());
}

/// Sizes of a call, as a launcher asks for them.
void ask(const codegen::Manifest& manifest, const codegen::ManifestEntry& entry, std::int64_t count,
         std::int64_t slot_bytes) {
    const auto ranks = static_cast<int>(std::min(manifest.ranks.size(), kMostRanks));
    for (int rank = 0; rank < ranks; ++rank)
        if (manifest.workspace_bytes(rank, entry, count) < 0) __builtin_trap();
    const std::int64_t tiles = manifest.fitting_tiles(entry, count, slot_bytes, 2);
    if (tiles < 2) __builtin_trap();
    const auto connections = static_cast<int>(std::min(manifest.connections.size(), kMostConnections));
    for (int connection = 0; connection < connections; ++connection) {
        const std::int64_t bytes = manifest.message_bytes(connection, entry, count, tiles);
        if (bytes < 0 || bytes > slot_bytes) __builtin_trap();
    }
}

void check(const codegen::Manifest& manifest) {
    const std::string text = codegen::to_json(manifest);
    if (codegen::to_json(read(text, "again")) != text) __builtin_trap();
    runtime::check_manifest(manifest, "fuzz");
    for (const codegen::ManifestEntry& entry : manifest.entries) {
        const auto op = entry.op.value_or(ir::ReduceOp::sum);
        const codegen::ManifestEntry* found = manifest.find_entry(entry.type, op, entry.nan);
        if (found == nullptr || found->element_size() != entry.element_size()) __builtin_trap();
        for (const std::int64_t count : {std::int64_t{0}, std::int64_t{7}, std::int64_t{1} << 30}) {
            for (const std::int64_t slot_bytes : {std::int64_t{16}, std::int64_t{1} << 20}) {
                try {
                    ask(manifest, entry, count, slot_bytes);
                } catch (const Error& error) {
                    if (error.kind() != ErrorKind::input) __builtin_trap();
                }
            }
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        check(read({reinterpret_cast<const char*>(data), size}, "fuzz"));
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) __builtin_trap();
    }
    return 0;
}
