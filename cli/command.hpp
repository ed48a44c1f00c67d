// What every command of the command line is made of. One file per command; commands.cpp lists them.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace baton::cli {

/// One command ("baton topo", "baton sim", ...). Help text, examples and the table of commands come from
/// here.
class Command {
public:
    virtual ~Command() = default;
    virtual std::string name() const = 0;
    /// One line for the table of commands.
    virtual std::string summary() const = 0;
    /// Command lines that work as they stand, shown at the end of --help.
    virtual std::vector<std::string> examples() const = 0;
    /// What stands above the examples in --help: lists that options cannot tell. Ends with a line break.
    virtual std::string help_notes() const { return {}; }
    /// Declares options and subcommands; members of the command hold the values.
    virtual void declare(CLI::App& app) = 0;
    /// Does the work. Prints a short table to standard output, or JSON when `json` is set; the last line of
    /// the table is the next command to type. Returns the exit code; throws baton::Error.
    virtual int run() = 0;

    bool json = false;  ///< --json, declared by main for every command
};

/// All commands in the order of the table.
std::vector<std::unique_ptr<Command>> all_commands();

// One maker per file.
std::unique_ptr<Command> topo_command();
std::unique_ptr<Command> import_command();
std::unique_ptr<Command> bound_command();
std::unique_ptr<Command> synth_command();
std::unique_ptr<Command> verify_command();
std::unique_ptr<Command> sim_command();
std::unique_ptr<Command> whatif_command();
std::unique_ptr<Command> lower_command();
std::unique_ptr<Command> codegen_command();
std::unique_ptr<Command> export_command();
std::unique_ptr<Command> run_command();
std::unique_ptr<Command> quickstart_command();

/// A table for people: columns padded, numbers right-aligned, two blanks between columns.
class Table {
public:
    explicit Table(std::vector<std::string> header);
    void row(std::vector<std::string> cells);
    std::string text() const;

private:
    std::vector<std::vector<std::string>> rows_;
};

/// A paragraph in lines of at most 100 columns: `label` in front of the first, the others indented by its
/// width. Ends with a line break.
std::string paragraph(const std::string& label, const std::string& text);

}  // namespace baton::cli
