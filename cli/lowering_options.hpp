// A schedule file and how it is lowered: the same for every command that needs a Program.
#pragma once

#include <baton/codegen/lower.hpp>
#include <baton/ir/program.hpp>

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace baton::cli {

/// What a command needs of programs that are lowered for it; a program that is given is taken as it is.
struct LoweringNeeds {
    std::string mode = "automatic";  ///< where --mode says nothing
    int slots = 0;  ///< of staged connections where --slots says nothing; 0: the lowering's choice
    bool equal_chunks = false;  ///< chunks of one size (codegen::equal_chunks)
};

/// FILE, --ranks, --root, --param, --mode, --slots, --channels, --threadblocks and --wide.
class LoweringOptions {
public:
    void declare(CLI::App& app);
    /// The program: an algorithm is lowered up to and with pass `stop_after` ("" = all), a program is taken
    /// as it stands. Throws an input error when lowering options come with a program.
    /// `note`, when given, is set to what was changed for `needs`, or emptied.
    ir::Program program(const std::string& stop_after = {}, const LoweringNeeds& needs = {},
                        std::string* note = nullptr) const;
    /// What was typed, to be put behind the next command: "FILE --ranks 8 --mode put".
    std::string as_typed() const;
    const std::string& file() const { return file_; }

private:
    std::string file_, mode_ = "automatic";
    std::optional<int> ranks_, root_;
    std::vector<std::string> params_;
    int slots_ = 0, channels_ = 1, threadblocks_ = 32;
    bool wide_ = false;
};

/// "12 instructions, 4 threadblocks, 8 connections (staged)".
std::string describe_parts(const ir::Program& program);

}  // namespace baton::cli
