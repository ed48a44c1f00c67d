#include <baton/cli/command.hpp>

namespace baton::cli {

std::vector<std::unique_ptr<Command>> all_commands() {
    std::vector<std::unique_ptr<Command>> commands;
    // Each command is added here by the change that brings it, in this order:
    // quickstart topo bound synth verify sim whatif lower codegen run.
    commands.push_back(topo_command());
    commands.push_back(bound_command());
    commands.push_back(synth_command());
    commands.push_back(verify_command());
    commands.push_back(sim_command());
    commands.push_back(whatif_command());
    return commands;
}

}  // namespace baton::cli
