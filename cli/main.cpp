// The command line: parses, runs one command, turns errors into one line and an exit code.
#include <baton/base/error.hpp>
#include <baton/cli/command.hpp>

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

namespace {

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
    // CLI11 prints help and version through exceptions of exit code 0.
    if (error.get_exit_code() == 0) return app.exit(error);
    std::string line = error.what();
    if (line.empty()) line = "wrong usage";
    for (char& c : line) {
        if (c == '\n') c = ' ';
    }
    std::fprintf(stderr, "baton: %s; try --help\n", line.c_str());
    return 2;
}

// CLI11 takes an empty value for 0 or for no value at all, both of which would be a silent default.
void refuse_empty_values(const CLI::App& app) {
    for (const CLI::Option* option : app.get_options()) {
        if (!option->nonpositional()) continue;
        for (const std::string& value : option->results()) {
            if (value.empty()) throw baton::input_error("the value is empty", option->get_name());
        }
    }
    for (const CLI::App* sub : app.get_subcommands()) refuse_empty_values(*sub);
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);
    CLI::App app("baton: writes, checks, simulates and runs collective communication", "baton");
    app.set_version_flag("--version", "baton " BATON_VERSION);
    app.require_subcommand(1);
    auto commands = baton::cli::all_commands();
    for (auto& command : commands) {
        CLI::App* sub = app.add_subcommand(command->name(), command->summary());
        std::string footer = "\n" + command->help_notes() + "Example:\n";
        for (const std::string& example : command->examples()) footer += "  " + example + "\n";
        sub->footer(footer);
        command->declare(*sub);
        sub->add_flag("--json", command->json, "print the result as JSON");
        // Subcommands of a command accept --json after their own name too.
        sub->fallthrough();
        for (CLI::App* inner : sub->get_subcommands([](CLI::App*) { return true; })) inner->fallthrough();
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return usage_error(app, error);
    }
    try {
        refuse_empty_values(app);
        for (std::size_t i = 0; i < commands.size(); ++i) {
            if (!app.got_subcommand(commands[i]->name())) continue;
            const int code = commands[i]->run();
            if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
                throw baton::input_error("cannot write to standard output");
            return code;
        }
    } catch (const baton::Error& error) {
        std::fflush(stdout);
        std::fprintf(stderr, "baton: %s\n", error.what());
        return baton::exit_code(error.kind());
    } catch (const std::bad_alloc&) {
        std::fprintf(stderr, "baton: out of memory; use fewer ranks, chunks or bytes\n");
        return 2;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "baton: internal error: %s; this is a fault of Baton, please report it\n",
                     error.what());
        return 70;
    }
    return 2;
}
