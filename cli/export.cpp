// baton export: schedules and machines in the formats of other tools.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/base/json_reader.hpp>
#include <baton/base/quantities.hpp>
#include <baton/cli/command.hpp>
#include <baton/cli/lowering_options.hpp>
#include <baton/cli/options.hpp>
#include <baton/codegen/interchange/dot.hpp>
#include <baton/codegen/interchange/goal.hpp>
#include <baton/codegen/interchange/msccl.hpp>
#include <baton/codegen/interchange/mscclpp.hpp>
#include <baton/codegen/interchange/step_diagram.hpp>
#include <baton/ir/verify.hpp>
#include <baton/topologies/draw.hpp>
#include <baton/topologies/load.hpp>

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace baton::cli {
namespace {

using Json = nlohmann::ordered_json;

class ExportCommand final : public Command {
public:
    std::string name() const override { return "export"; }
    std::string summary() const override { return "writes schedules and machines for other tools"; }
    std::vector<std::string> examples() const override {
        const std::string folder = "examples/algorithms/";
        return {"baton export msccl-xml " + folder + "ring_all_reduce.json --ranks 8 -o ring.xml",
                "baton export msccl-xml " + folder + "two_shot_all_reduce.json --executor rccl --protocol ll",
                "baton export mscclpp-json " + folder + "two_shot_all_reduce.json --ranks 8 -o plan.json",
                "baton export svg " + folder + "ring_all_reduce.json --ranks 4 -o steps.svg",
                "baton export dot dgx_h100 -o machine.dot"};
    }
    std::string help_notes() const override {
        return "Formats:\n"
               "  msccl-xml      algorithm XML of MSCCL and RCCL\n"
               "  mscclpp-json   execution plan of MSCCL++\n"
               "  goal           GOAL text of LogGOP-style simulators, for calls of --size\n"
               "  svg            a picture: a machine (file or preset), or what a schedule sends in which "
               "step\n"
               "  dot            the same for Graphviz, of any size\n\n";
    }
    void declare(CLI::App& app) override {
        app.add_option("FORMAT", format_, "msccl-xml, mscclpp-json, goal, svg or dot")
            ->required()
            ->check(CLI::IsMember({"msccl-xml", "mscclpp-json", "goal", "svg", "dot"}));
        schedule_.declare(app);
        app.add_option("--executor", executor_, "whose limits hold: msccl (default) or rccl")
            ->check(CLI::IsMember({"msccl", "rccl"}));
        app.add_option("--protocol", protocol_,
                       "of all connections: simple, ll or ll128 (default: the program's)")
            ->check(CLI::IsMember({"simple", "ll", "ll128"}));
        app.add_option("--min-bytes", min_, "smallest call it is for, as the executor counts bytes");
        app.add_option("--max-bytes", max_, "largest call it is for (default: no end)");
        app.add_option("--size", size_, "goal: bytes of a rank's larger buffer (default 1MiB)");
        app.add_option("--view", view_, "dot of a schedule: steps (default) or connections")
            ->check(CLI::IsMember({"steps", "connections"}));
        app.add_option("-o,--output", output_, "file to write; without it the text is printed");
    }
    int run() override {
        const bool picture = format_ == "svg" || format_ == "dot";
        if (picture && is_machine()) {
            const topologies::Topology topology = topologies::load(schedule_.file());
            return finish(format_ == "svg" ? topologies::to_svg(topology) : topologies::to_dot(topology),
                          topology.name, fmt::format("{} ranks", topology.rank_count()));
        }
        const ir::Program program = schedule_.program({}, needs(), &note_);
        if (ir::verify(program).assurance == ir::Assurance::not_proven)
            throw check_error("the program is too large to be proven right, and is not exported",
                              program.name);
        if (format_ == "svg") return write(codegen::write_step_svg(program), program);
        if (format_ == "dot")
            return write(view_ == "steps" ? codegen::write_step_dot(program) : codegen::write_dot(program),
                         program);
        if (format_ == "goal")
            return write(codegen::write_goal(program, parse_bytes(size_, "--size").count), program);
        if (format_ == "mscclpp-json") {
            codegen::MscclppOptions options;
            if (!min_.empty()) options.min_bytes = parse_bytes(min_, "--min-bytes").count;
            if (!max_.empty()) options.max_bytes = parse_bytes(max_, "--max-bytes").count;
            return write(codegen::write_mscclpp_json(program, options), codegen::mscclpp_form(program));
        }
        const codegen::MscclOptions options = msccl_options();
        return write(codegen::write_msccl_xml(program, options), codegen::msccl_form(program, options));
    }

private:
    /// A topology document or the name of a preset; anything else is a schedule.
    bool is_machine() const {
        const std::string& file = schedule_.file();
        std::error_code failed;
        if (file == "-" || file.ends_with(".cbor")) return false;
        if (!std::filesystem::is_regular_file(file, failed)) return true;
        const JsonDocument document = JsonDocument::load(file);
        if (!document.root().is_object()) return false;
        const auto format = document.root().find("baton");
        return format && format->is_string() && format->string().starts_with("topology/");
    }

    /// Programs for executors come in their chunks, and with no more messages under way than they keep.
    LoweringNeeds needs() const {
        LoweringNeeds needs;
        needs.equal_chunks = format_ == "msccl-xml" || format_ == "mscclpp-json";
        if (format_ == "msccl-xml") needs.mode = "staged";
        if (format_ == "msccl-xml") needs.slots = codegen::msccl_slots(msccl_options());
        return needs;
    }

    codegen::MscclOptions msccl_options() const {
        codegen::MscclOptions options;
        if (executor_ == "rccl") options.executor = codegen::MscclExecutor::rccl;
        if (protocol_ == "simple") options.protocol = ir::Protocol::simple;
        if (protocol_ == "ll") options.protocol = ir::Protocol::ll;
        if (protocol_ == "ll128") options.protocol = ir::Protocol::ll128;
        if (!min_.empty()) options.min_bytes = parse_bytes(min_, "--min-bytes").count;
        if (!max_.empty()) options.max_bytes = parse_bytes(max_, "--max-bytes").count;
        return options;
    }

    int write(const std::string& text, const ir::Program& program) const {
        return finish(text, program.name, ir::describe(program.collective) + "; " + describe_parts(program));
    }

    int finish(const std::string& text, const std::string& what, const std::string& parts) const {
        if (!output_.empty()) write_file(output_, text);
        std::string next = fmt::format("baton export {} {} -o FILE", format_, schedule_.as_typed());
        if (!output_.empty() && (format_ == "msccl-xml" || format_ == "mscclpp-json"))
            next = "baton import " + format_ + " " + shell_word(output_);
        if (!output_.empty() && format_ == "svg") next = "xdg-open " + shell_word(output_);
        if (!output_.empty() && format_ == "dot") next = "dot -Tsvg " + shell_word(output_);
        if (json) {
            Json out = {{"format", format_}, {"name", what}, {"parts", parts}};
            if (output_.empty())
                out["text"] = text;
            else
                out["written"] = output_;
            if (!note_.empty()) out["note"] = note_;
            out["next"] = next;
            std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
        } else if (output_.empty()) {
            std::fputs(text.c_str(), stdout);
            if (!note_.empty()) std::fputs(paragraph("note: ", note_).c_str(), stderr);
        } else {
            std::printf("%s: %s\n%s\nwritten: %s\nnext: %s\n", what.c_str(), parts.c_str(),
                        note_.empty() ? "" : paragraph("note: ", note_).c_str(), output_.c_str(),
                        next.c_str());
        }
        return 0;
    }

    LoweringOptions schedule_;
    std::string format_, executor_ = "msccl", view_ = "steps", protocol_, min_, max_, output_, size_ = "1MiB",
                         note_;
};

}  // namespace

std::unique_ptr<Command> export_command() { return std::make_unique<ExportCommand>(); }

}  // namespace baton::cli
