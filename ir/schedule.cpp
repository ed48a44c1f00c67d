#include <baton/base/json_reader.hpp>
#include <baton/ir/schedule.hpp>

#include <fmt/format.h>

namespace baton::ir {

Schedule read_schedule(const JsonReader& root, const LoadOptions& options) {
    if (!root.is_object()) throw root.error("expected a schedule, an object");
    const auto format = root.at("baton");
    const std::string name = format.string();
    if (name == "algorithm/1") return read_algorithm(root, options);
    if (name != "program/1")
        throw format.error(
            fmt::format("expected \"algorithm/1\" or \"program/1\", got \"{}\"", name.substr(0, 60)));
    Program program = read_program(root);
    if (options.ranks && *options.ranks != program.collective.ranks)
        throw root.error(
            fmt::format("this program is for {} ranks; got {}", program.collective.ranks, *options.ranks),
            "lower the algorithm it came from for another number of ranks");
    if (options.root && has_root(program.collective.kind) && *options.root != program.collective.root)
        throw root.error(
            fmt::format("this program has root {}; got {}", program.collective.root, *options.root),
            "lower the algorithm it came from for another root");
    if (!options.params.empty())
        throw root.error(fmt::format("a program has no param \"{}\"", options.params.begin()->first));
    return program;
}

Schedule load_schedule(const std::string& path, const LoadOptions& options) {
    const auto document = JsonDocument::load(path);
    return read_schedule(document.root(), options);
}

Schedule parse_schedule(std::string_view text, const std::string& name, const LoadOptions& options) {
    const auto document = JsonDocument::parse(text, name);
    return read_schedule(document.root(), options);
}

const Collective& collective_of(const Schedule& schedule) {
    return std::visit([](const auto& form) -> const Collective& { return form.collective; }, schedule);
}

const std::string& name_of(const Schedule& schedule) {
    return std::visit([](const auto& form) -> const std::string& { return form.name; }, schedule);
}

std::string to_json(const Schedule& schedule) {
    return std::visit([](const auto& form) { return to_json(form); }, schedule);
}

}  // namespace baton::ir
