// baton lower: projects an algorithm onto ranks, threadblocks and connections.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/cli/command.hpp>
#include <baton/cli/lowering_options.hpp>
#include <baton/cli/options.hpp>
#include <baton/ir/program_json.hpp>
#include <baton/ir/verify.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace baton::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Programs of at most so many instructions are printed whole without being asked.
constexpr std::int64_t kShortProgram = 64;

class LowerCommand final : public Command {
public:
    std::string name() const override { return "lower"; }
    std::string summary() const override {
        return "turns an algorithm into a program: threadblocks, instructions, connections";
    }
    std::vector<std::string> examples() const override {
        return {"baton lower examples/algorithms/ring_all_reduce.json --ranks 4",
                "baton lower examples/algorithms/ring_all_gather.json --mode put -o program.json"};
    }
    void declare(CLI::App& app) override {
        schedule_.declare(app);
        std::string passes;
        for (const codegen::PassInfo& pass : codegen::lowering_passes()) {
            passes += (passes.empty() ? "" : ", ") + pass.name;
        }
        app.add_option("--dump-after", stop_after_, "stop after a pass and print the program: " + passes);
        app.add_flag("--dump", dump_, "print the program however long it is");
        app.add_option("-o,--output", output_,
                       "write the program to this file (JSON; CBOR when it ends in .cbor)");
    }
    int run() override {
        if (!stop_after_.empty()) check_pass();
        const ir::Program program = schedule_.program(stop_after_);
        const ir::ProgramReport report = ir::verify(program);
        if (!output_.empty()) {
            const bool binary = output_.size() > 5 && output_.ends_with(".cbor");
            write_file(output_, binary ? ir::to_cbor(program) : ir::to_json(program));
        }
        if (json) {
            print_json(program, report);
            return 0;
        }
        std::printf("%s: %s\n%s; result %s, no race, no deadlock\n", program.name.c_str(),
                    ir::describe(program.collective).c_str(), describe_parts(program).c_str(),
                    std::string(to_string(report.assurance)).c_str());
        if (dump_ || !stop_after_.empty() || program.instruction_count() <= kShortProgram) {
            std::printf("\n%s", ir::dump(program).c_str());
        } else {
            std::printf("more than %lld instructions; --dump prints them\n",
                        static_cast<long long>(kShortProgram));
        }
        if (!output_.empty()) std::printf("\nwritten: %s\n", output_.c_str());
        std::printf("\nnext: %s\n", next().c_str());
        return 0;
    }

private:
    void check_pass() const {
        const auto& passes = codegen::lowering_passes();
        if (std::any_of(passes.begin(), passes.end(),
                        [&](const auto& pass) { return pass.name == stop_after_; }))
            return;
        std::string names;
        for (const codegen::PassInfo& pass : passes) names += (names.empty() ? "" : ", ") + pass.name;
        throw input_error("no pass is called \"" + stop_after_ + "\"", "--dump-after", "use one of " + names);
    }

    void print_json(const ir::Program& program, const ir::ProgramReport& report) const {
        Json out = {{"name", program.name},
                    {"collective", ir::describe(program.collective)},
                    {"ranks", program.collective.ranks},
                    {"instructions", program.instruction_count()},
                    {"result", to_string(report.assurance)},
                    {"order", to_string(report.order)},
                    {"smallest_slots", report.smallest_slots}};
        Json ranks = Json::array();
        for (const ir::RankProgram& rank : program.ranks) {
            ranks.push_back({{"threadblocks", rank.threadblocks.size()},
                             {"scratch_places", rank.scratch_classes.size()}});
        }
        out["per_rank"] = std::move(ranks);
        out["connections"] = program.connections.size();
        out["dump"] = ir::dump(program);
        if (!output_.empty()) out["written"] = output_;
        out["next"] = next();
        std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    }

    std::string next() const {
        return "baton codegen " + (output_.empty() ? schedule_.as_typed() : shell_word(output_)) +
               " -o module";
    }

    LoweringOptions schedule_;
    std::string stop_after_, output_;
    bool dump_ = false;
};

}  // namespace

std::unique_ptr<Command> lower_command() { return std::make_unique<LowerCommand>(); }

}  // namespace baton::cli
