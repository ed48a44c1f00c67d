#include <baton/base/error.hpp>
#include <baton/cli/lowering_options.hpp>
#include <baton/cli/options.hpp>
#include <baton/codegen/interchange/equal_chunks.hpp>
#include <baton/ir/schedule.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <set>
#include <utility>
#include <variant>

namespace baton::cli {

void LoweringOptions::declare(CLI::App& app) {
    app.add_option("FILE", file_, "an algorithm or a program, JSON or CBOR; - reads standard input")
        ->required();
    app.add_option("--ranks", ranks_, "number of ranks, instead of the file's");
    app.add_option("--root", root_, "root, instead of the file's");
    app.add_option("--param", params_, "NAME=INTEGER, instead of the file's; may be repeated")
        ->allow_extra_args(false);
    app.add_option("--mode", mode_, "transfer mode: automatic (default), staged, put or get");
    app.add_option("--slots", slots_, "depth of staged connections; 0 (default): the lowering's choice");
    app.add_option("--channels", channels_,
                   "lanes over which steps without a channel are spread (default 1)");
    app.add_option("--threadblocks", threadblocks_, "most threadblocks of a rank (default 32)");
    app.add_flag("--wide", wide_, "f16, bf16 and f8 travel and accumulate as f32");
}

ir::Program LoweringOptions::program(const std::string& stop_after, const LoweringNeeds& needs,
                                     std::string* note) const {
    codegen::LowerOptions options;
    options.mode = codegen::parse_mode_preference(mode_ == "automatic" ? needs.mode : mode_, "--mode");
    options.slots = slots_ != 0 ? slots_ : needs.slots;
    options.channels = channels_;
    options.threadblocks = threadblocks_;
    options.wide = wide_;
    options.stop_after = stop_after;
    ir::LoadOptions load;
    load.ranks = ranks_;
    load.root = root_;
    load.params = parse_params(params_);
    ir::Schedule schedule = ir::load_schedule(file_, load);
    if (auto* program = std::get_if<ir::Program>(&schedule)) {
        if (mode_ != "automatic" || slots_ != 0 || channels_ != 1 || threadblocks_ != 32 || wide_ ||
            !stop_after.empty()) {
            throw input_error("the file holds a program, which is lowered already", file_,
                              "give the algorithm, or leave out the options of lowering");
        }
        return std::move(*program);
    }
    auto& algorithm = std::get<ir::Algorithm>(schedule);
    if (!needs.equal_chunks) return codegen::lower(algorithm, options);
    const codegen::EqualChunks equal = codegen::equal_chunks(std::move(algorithm));
    if (note != nullptr) *note = equal.note;
    return codegen::lower(equal.algorithm, options);
}

std::string LoweringOptions::as_typed() const {
    std::string line = shell_word(file_);
    if (ranks_) line += fmt::format(" --ranks {}", *ranks_);
    if (root_) line += fmt::format(" --root {}", *root_);
    for (const std::string& param : params_) line += " --param " + shell_word(param);
    if (mode_ != "automatic") line += " --mode " + mode_;
    if (slots_ != 0) line += fmt::format(" --slots {}", slots_);
    if (channels_ != 1) line += fmt::format(" --channels {}", channels_);
    if (threadblocks_ != 32) line += fmt::format(" --threadblocks {}", threadblocks_);
    if (wide_) line += " --wide";
    return line;
}

std::string describe_parts(const ir::Program& program) {
    std::size_t threadblocks = 0;
    for (const ir::RankProgram& rank : program.ranks) threadblocks += rank.threadblocks.size();
    std::set<std::string> modes;
    for (const ir::Connection& connection : program.connections)
        modes.insert(std::string(to_string(connection.mode)));
    return fmt::format("{} instructions, {} threadblocks, {} connections{}", program.instruction_count(),
                       threadblocks, program.connections.size(),
                       modes.empty() ? "" : fmt::format(" ({})", fmt::join(modes, ", ")));
}

}  // namespace baton::cli
