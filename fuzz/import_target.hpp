// What fuzz targets of importers share: any bytes give an imported machine, which writes out and loads back
// equal, or an input error.
#pragma once

#include <baton/base/error.hpp>
#include <baton/topologies/import/importer.hpp>
#include <baton/topologies/inspect.hpp>
#include <baton/topologies/load.hpp>

#include <cstddef>
#include <cstdint>

/// Feeds one input to the importer of that name.
inline void fuzz_import(const char* format, const std::uint8_t* data, std::size_t size,
                        const baton::topologies::ImportOptions& options = {}) {
    using namespace baton::topologies;
    const ImportSource source{{reinterpret_cast<const char*>(data), size}, "fuzz"};
    const Importer& reader = importer(format);
    static_cast<void>(reader.recognizes(source.text));
    try {
        const Imported got = reader.read(source, options);
        // Large machines are accepted, but would slow the search down.
        if (got.topology.nodes.size() > 2000 || got.topology.links.size() > 20000) return;
        if (parse_topology(to_json(got.topology), "again").hash() != got.topology.hash()) __builtin_trap();
        static_cast<void>(problems(got.topology));
    } catch (const baton::Error& error) {
        if (error.kind() != baton::ErrorKind::input) __builtin_trap();
    }
}
