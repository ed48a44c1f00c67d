// baton export: schedules in the formats of other executors.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/base/quantities.hpp>
#include <baton/cli/command.hpp>
#include <baton/cli/lowering_options.hpp>
#include <baton/cli/options.hpp>
#include <baton/codegen/interchange/msccl.hpp>
#include <baton/ir/verify.hpp>

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace baton::cli {
namespace {

using Json = nlohmann::ordered_json;

class ExportCommand final : public Command {
public:
    std::string name() const override { return "export"; }
    std::string summary() const override { return "writes a schedule for another executor"; }
    std::vector<std::string> examples() const override {
        return {"baton export msccl-xml examples/algorithms/ring_all_reduce.json --ranks 8 -o ring.xml",
                "baton export msccl-xml examples/algorithms/two_shot_all_reduce.json --executor rccl "
                "--protocol ll"};
    }
    std::string help_notes() const override {
        return "Formats:\n  msccl-xml      algorithm XML of MSCCL and RCCL\n\n";
    }
    void declare(CLI::App& app) override {
        app.add_option("FORMAT", format_, "msccl-xml")->required()->check(CLI::IsMember({"msccl-xml"}));
        schedule_.declare(app);
        app.add_option("--executor", executor_, "whose limits hold: msccl (default) or rccl")
            ->check(CLI::IsMember({"msccl", "rccl"}));
        app.add_option("--protocol", protocol_,
                       "of all connections: simple, ll or ll128 (default: the program's)")
            ->check(CLI::IsMember({"simple", "ll", "ll128"}));
        app.add_option("--min-bytes", min_, "smallest call it is for, as the executor counts bytes");
        app.add_option("--max-bytes", max_, "largest call it is for (default: no end)");
        app.add_option("-o,--output", output_, "file to write; without it the text is printed");
    }
    int run() override {
        const ir::Program program = schedule_.program();
        if (ir::verify(program).assurance == ir::Assurance::not_proven)
            throw check_error("the program is too large to be proven right, and is not exported",
                              program.name);
        codegen::MscclOptions options;
        if (executor_ == "rccl") options.executor = codegen::MscclExecutor::rccl;
        if (protocol_ == "simple") options.protocol = ir::Protocol::simple;
        if (protocol_ == "ll") options.protocol = ir::Protocol::ll;
        if (protocol_ == "ll128") options.protocol = ir::Protocol::ll128;
        if (!min_.empty()) options.min_bytes = parse_bytes(min_, "--min-bytes").count;
        if (!max_.empty()) options.max_bytes = parse_bytes(max_, "--max-bytes").count;
        const ir::Program formed = codegen::msccl_form(program, options);
        const std::string text = codegen::write_msccl_xml(program, options);
        if (!output_.empty()) write_file(output_, text);
        const std::string next =
            output_.empty() ? fmt::format("baton export {} {} -o schedule.xml", format_, schedule_.as_typed())
                            : fmt::format("baton import {} {}", format_, shell_word(output_));
        if (json) {
            Json out = {{"format", format_},
                        {"name", formed.name},
                        {"collective", ir::describe(formed.collective)},
                        {"parts", describe_parts(formed)}};
            if (output_.empty())
                out["text"] = text;
            else
                out["written"] = output_;
            out["next"] = next;
            std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
        } else if (output_.empty()) {
            std::fputs(text.c_str(), stdout);
        } else {
            std::printf("%s: %s\n%s for %s\n\nwritten: %s\nnext: %s\n", formed.name.c_str(),
                        ir::describe(formed.collective).c_str(), describe_parts(formed).c_str(),
                        executor_.c_str(), output_.c_str(), next.c_str());
        }
        return 0;
    }

private:
    LoweringOptions schedule_;
    std::string format_, executor_ = "msccl", protocol_, min_, max_, output_;
};

}  // namespace

std::unique_ptr<Command> export_command() { return std::make_unique<ExportCommand>(); }

}  // namespace baton::cli
