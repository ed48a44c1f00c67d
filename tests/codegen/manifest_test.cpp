// Manifests that no emission writes, but that a file may hold.
#include <baton/base/error.hpp>
#include <baton/codegen/manifest.hpp>

#include <doctest/doctest.h>
#include <string>

using namespace baton;

namespace {

codegen::Manifest read(const std::string& text) {
    const JsonDocument document = JsonDocument::parse(text, "manifest");
    return codegen::read_manifest(document.root());
}

std::string manifest(const std::string& scratch_places, const std::string& weight) {
    return R"({"baton": "manifest/1", "abi": 1, "name": "two", "hash": "0",
        "collective": {"kind": "broadcast", "ranks": 2, "chunks": 2, "root": 0, "weights": [3, 1]},
        "properties": {"wide": false, "order": "fixed", "assurance": "proved"},
        "threads": 32, "instances": 1, "advance": 0, "files": {"source": "", "header": "", "program": ""},
        "entries": [{"name": "copy16", "element_size": 16}],
        "connections": [{"src": 0, "dst": 1, "channel": 0, "mode": "staged", "protocol": "simple", "slots": 4,
                         "messages": [[1, )" +
           weight + R"(]]}],
        "tokens": [],
        "ranks": [{"threadblocks": 1, "scratch_places": )" +
           scratch_places + R"(, "connections": [[0, true]], "tokens": [], "peers": [1], "remote": []},
                  {"threadblocks": 1, "scratch_places": 0, "connections": [[0, false]], "tokens": [], "peers": [0],
                   "remote": []}], "binaries": []})";
}

ErrorKind kind_of(const auto& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.kind();
    }
    return ErrorKind::internal;
}

}  // namespace

TEST_CASE("sizes that 63 bits do not count are input errors") {
    const codegen::Manifest large = read(manifest("2147483648", "3"));
    const codegen::ManifestEntry& entry = large.entries.front();
    CHECK(large.workspace_bytes(0, entry, 16) == (std::int64_t{1} << 31) * 12 * 16);
    CHECK(kind_of([&] { large.workspace_bytes(0, entry, std::int64_t{1} << 30); }) == ErrorKind::input);
    CHECK(kind_of([&] { large.scratch_stride(entry, std::int64_t{1} << 61); }) == ErrorKind::input);
    CHECK(large.workspace_bytes(1, entry, std::int64_t{1} << 30) == 0);
}

TEST_CASE("a message is no heavier than the heaviest class") {
    CHECK(read(manifest("0", "3")).connections.front().messages.front().weight == 3);
    CHECK(kind_of([] { read(manifest("0", "4")); }) == ErrorKind::input);
}
