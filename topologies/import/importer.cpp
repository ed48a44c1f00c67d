#include <baton/topologies/import/importer.hpp>

#include <baton/base/error.hpp>
#include <baton/topologies/import/formats.hpp>
#include <baton/topologies/read.hpp>

#include <fmt/format.h>

namespace baton::topologies {
namespace {

constexpr Importer kImporters[] = {
    kNcclXmlImporter,   kHwlocImporter,    kGraphmlImporter,   kSimgridImporter,
    kAstraSimImporter,  kSimaiImporter,    kNs3Importer,       kHtsimImporter,
    kTacclImporter,     kTacosCsvImporter, kTeCclImporter,     kIbnetdiscoverImporter,
    kTopographImporter, kRocmSmiImporter,  kNvidiaSmiImporter, kEdgeListImporter,
};

std::vector<std::string> format_names() {
    std::vector<std::string> names;
    for (const Importer& known : kImporters) names.emplace_back(known.name);
    return names;
}

}  // namespace

Error ImportSource::error(int line, std::string what, std::string remedy) const {
    return input_error(std::move(what), fmt::format("{}:{}", name, line), std::move(remedy));
}

std::span<const Importer> importers() { return kImporters; }

const Importer& importer(std::string_view name) {
    for (const Importer& known : kImporters) {
        if (name == known.name) return known;
    }
    throw input_error(
        fmt::format("there is no format '{}'{}", name.substr(0, 40), near_names(name, format_names())));
}

const Importer& recognize(const ImportSource& source) {
    if (const std::string known = known_other_file(source.text); !known.empty())
        throw input_error(known, source.name);
    for (const Importer& known : kImporters) {
        if (known.recognizes(source.text)) return known;
    }
    throw input_error(
        "the file is of no format that is known" + near_names("", format_names()), source.name,
        "name the format: baton import FORMAT FILE; baton import --help lists those of schedules and "
        "measurements too");
}

Imported read_named(const Importer& format, const ImportSource& source, const ImportOptions& options) {
    if (format.recognizes(source.text)) return format.read(source, options);
    if (const std::string known = known_other_file(source.text); !known.empty())
        throw input_error(known, source.name);
    try {
        return format.read(source, options);
    } catch (const Error& error) {
        for (const Importer& other : kImporters) {
            if (other.recognizes(source.text))
                throw Error(
                    error.kind(), error.message(), error.where(),
                    fmt::format("it looks like a file of {}: baton import {} FILE", other.name, other.name));
        }
        throw;
    }
}

}  // namespace baton::topologies
