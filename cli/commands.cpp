#include <baton/cli/command.hpp>

namespace baton::cli {

std::vector<std::unique_ptr<Command>> all_commands() {
    std::vector<std::unique_ptr<Command>> commands;
    commands.push_back(quickstart_command());
    commands.push_back(topo_command());
    commands.push_back(import_command());
    commands.push_back(bound_command());
    commands.push_back(synth_command());
    commands.push_back(verify_command());
    commands.push_back(sim_command());
    commands.push_back(whatif_command());
    commands.push_back(lower_command());
    commands.push_back(codegen_command());
    commands.push_back(export_command());
    commands.push_back(run_command());
    return commands;
}

}  // namespace baton::cli
