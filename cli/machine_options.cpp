#include <baton/cli/machine_options.hpp>

#include <baton/base/error.hpp>
#include <baton/cli/options.hpp>
#include <baton/topologies/load.hpp>

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <cstdlib>

namespace baton::cli {

void MachineOptions::declare(CLI::App& app) {
    app.add_option("TOPO", spec, "a topology file, a preset or a generator (baton topo list)")->required();
    app.add_option(
           "--without", without,
           "take a failed link or node away: an id, a<>b for both directions, a glob with *, ID*2 for "
           "two units; may be repeated")
        ->allow_extra_args(false);
    app.add_option("--degrade", degrade, "LINK=FACTOR: scale the goodput of a slow link; may be repeated")
        ->allow_extra_args(false);
}

topologies::Topology MachineOptions::load() const {
    topologies::Topology machine = topologies::load(spec);
    std::string changes;
    for (const std::string& id : without) {
        topologies::fail(machine, id);
        changes += " without " + id;
    }
    for (const std::string& text : degrade) {
        const auto [id, factor] = parse_degrade(text);
        topologies::degrade(machine, id, factor);
        changes += " with " + text;
    }
    machine.name += changes;
    return machine;
}

std::string MachineOptions::as_typed() const {
    std::string text = " " + shell_word(spec);
    for (const std::string& id : without) text += " --without " + shell_word(id);
    for (const std::string& slow : degrade) text += " --degrade " + shell_word(slow);
    return text;
}

std::pair<std::string, double> parse_degrade(const std::string& text) {
    const std::size_t equals = text.rfind('=');
    char* end = nullptr;
    const double factor = equals == std::string::npos ? 0 : std::strtod(text.c_str() + equals + 1, &end);
    if (equals == std::string::npos || end == text.c_str() + equals + 1 || *end != '\0')
        throw input_error(fmt::format("'{}' is not LINK=FACTOR", text.substr(0, 80)), "--degrade",
                          "for example 'gpu0>gpu1=0.5'");
    return {text.substr(0, equals), factor};
}

}  // namespace baton::cli
