#include <baton/topologies/import/hwloc_matrix.hpp>

#include <baton/base/index.hpp>
#include <baton/topologies/import/text_lines.hpp>

#include <fmt/format.h>
#include <algorithm>

namespace baton::topologies {
namespace {

constexpr std::int64_t kMostObjects = 4096;
constexpr std::int64_t kMostMegabytes = 100'000'000;

// The words of all child elements of that name.
std::vector<std::string> words_of(const XmlReader& element, std::string_view name, std::size_t most) {
    std::vector<std::string> all;
    for (const XmlReader& child : element.children(name)) {
        std::string text = child.text();
        std::replace(text.begin(), text.end(), '\n', ' ');
        std::replace(text.begin(), text.end(), '\r', ' ');
        for (const std::string_view word : TextLine{0, text, nullptr}.words()) {
            if (all.size() == most) throw child.error(fmt::format("more than {} words for the matrix", most));
            all.emplace_back(word);
        }
    }
    return all;
}

}  // namespace

BandwidthMatrix read_matrix(const XmlReader& element, const std::map<std::int64_t, MatrixEnd>& ends) {
    const auto objects = static_cast<std::size_t>(element.integer("nbobjs", 1, kMostObjects));
    if (const auto indexing = element.find("indexing"); indexing && *indexing != "gp")
        throw element.error(
            fmt::format("indexing=\"{}\" of a matrix between devices", indexing->substr(0, 20)),
            "devices are known by their gp_index");
    const std::vector<std::string> names = words_of(element, "indexes", objects);
    const std::vector<std::string> values = words_of(element, "u64values", objects * objects);
    if (names.size() != objects || values.size() != objects * objects)
        throw element.error(fmt::format("{} indexes and {} values for a matrix of {} objects", names.size(),
                                        values.size(), objects));
    BandwidthMatrix matrix;
    std::vector<const MatrixEnd*> known;
    for (const std::string& name : names) {
        // "OSDev:802" where objects differ in type, else "802".
        const auto number = integer_in(std::string_view(name).substr(name.find(':') + 1));
        if (!number) throw element.error(fmt::format("'{}' is no index of an object", name.substr(0, 40)));
        const auto found = ends.find(*number);
        known.push_back(found == ends.end() ? nullptr : &found->second);
        matrix.unknown_ends += found == ends.end();
    }
    for (std::size_t row = 0; row < objects; ++row) {
        for (std::size_t column = 0; column < objects; ++column) {
            const std::string& text = values[row * objects + column];
            const auto value = integer_in(text);
            if (!value || *value < 0)
                throw element.error(fmt::format("'{}' is no rate in MB/s", text.substr(0, 40)));
            // The diagonal holds 0 or the rate of the GPU's own memory.
            if (*value == 0 || row == column || !known[row] || !known[column] ||
                (known[row]->gpu >= 0 && known[row]->gpu == known[column]->gpu))
                continue;
            if (*value > kMostMegabytes)
                throw element.error(fmt::format("{} MB/s between two devices is above 100 TB/s", *value));
            matrix.cells.push_back({*known[row], *known[column], *value});
        }
    }
    return matrix;
}

}  // namespace baton::topologies
