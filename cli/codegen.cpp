// baton codegen: kernels of a schedule, with everything that a launcher must know.
#include <baton/base/error.hpp>
#include <baton/cli/command.hpp>
#include <baton/cli/lowering_options.hpp>
#include <baton/cli/options.hpp>
#include <baton/codegen/compile.hpp>
#include <baton/codegen/write_module.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace baton::cli {
namespace {

using Json = nlohmann::ordered_json;

class CodegenCommand final : public Command {
public:
    std::string name() const override { return "codegen"; }
    std::string summary() const override {
        return "writes kernels for a schedule: source, manifest, compiled forms";
    }
    std::vector<std::string> examples() const override {
        return {
            "baton codegen examples/algorithms/ring_all_reduce.json --ranks 4 --type f32,bf16 --op sum,max "
            "-o module",
            "baton codegen examples/algorithms/ring_all_gather.json --host -o gather"};
    }
    void declare(CLI::App& app) override {
        schedule_.declare(app);
        app.add_option("-o,--output", folder_, "folder to write to")->required();
        app.add_option("--type", types_, "element types, separated by commas (default f32)")->delimiter(',');
        app.add_option("--op", ops_, "operators of reducing collectives, separated by commas (default sum)")
            ->delimiter(',');
        app.add_option("--nan", nan_, "what max and min do with NaN: propagate (default) or ignore");
        app.add_option("--arch", architectures_, "cubins for these architectures, such as sm_80,sm_90")
            ->delimiter(',');
        app.add_flag("--host", host_, "a shared object for this machine's processors");
        app.add_option("--threads", emit_.threads, "CUDA threads of a threadblock (default 512)");
        app.add_option("--instances", emit_.instances,
                       "copies of the program that share the tiles of a call (default 1)");
    }
    int run() override {
        codegen::ModuleOptions options;
        options.emit = emit_;
        options.architectures = architectures_;
        options.host = host_;
        for (const std::string& each : architectures_) codegen::check_architecture(each, "--arch");
        const ir::Program program = schedule_.program();
        const bool combines = codegen::needs_operator(program);
        if (!combines && !ops_.empty()) {
            throw input_error("this schedule moves data and combines nothing", "--op", "leave out --op");
        }
        options.emit.entries = entries(combines);
        const codegen::WrittenModule written = codegen::write_module(folder_, program, options);
        if (json) {
            print_json(written);
        } else {
            print(written, program);
        }
        return 0;
    }

private:
    std::vector<codegen::EntryRequest> entries(bool combines) const {
        std::vector<ir::DataType> types;
        std::vector<ir::ReduceOp> ops;
        for (const std::string& type : types_) types.push_back(ir::parse_data_type(type, "--type"));
        for (const std::string& op : ops_) ops.push_back(ir::parse_reduce_op(op, "--op"));
        const ir::NanMode nan = ir::parse_nan_mode(nan_, "--nan");
        if (!combines) {
            std::vector<codegen::EntryRequest> sizes;
            for (const ir::DataType type : types) sizes.push_back({type, ir::ReduceOp::sum, nan});
            return sizes;
        }
        if (types.empty()) types.push_back(ir::DataType::f32);
        if (ops.empty()) ops.push_back(ir::ReduceOp::sum);
        return codegen::pair_entries(types, ops, nan);
    }

    void print(const codegen::WrittenModule& written, const ir::Program& program) const {
        const codegen::Manifest& m = written.manifest;
        std::printf("%s: %s\n%s\n\n", m.name.c_str(), ir::describe(m.collective).c_str(),
                    describe_parts(program).c_str());
        Table table({"entry", "type", "operator", "messages hold"});
        for (const codegen::ManifestEntry& entry : m.entries) {
            table.row({entry.name,
                       entry.op ? std::string(to_string(entry.type))
                                : fmt::format("{} bytes", entry.element_size()),
                       entry.op ? std::string(to_string(*entry.op)) : "copy",
                       entry.op ? std::string(to_string(entry.wire)) : "the same"});
        }
        std::printf("%s\nwritten to %s: %s\n", table.text().c_str(), folder_.c_str(),
                    fmt::format("{}", fmt::join(written.files, ", ")).c_str());
        for (const std::string& note : notes()) std::printf("%s\n", note.c_str());
        std::printf("\nnext: %s\n", next().c_str());
    }

    /// What could be compiled here but was not asked for, or could not.
    std::vector<std::string> notes() const {
        if (host_ || !architectures_.empty()) return {};
        return {"not compiled: --host makes a shared object, --arch sm_90 a cubin"};
    }

    void print_json(const codegen::WrittenModule& written) const {
        const codegen::Manifest& m = written.manifest;
        Json out = {{"name", m.name},
                    {"collective", ir::describe(m.collective)},
                    {"hash", m.hash},
                    {"folder", folder_},
                    {"files", written.files}};
        Json list = Json::array();
        for (const codegen::ManifestEntry& entry : m.entries) {
            Json item = {{"name", entry.name}, {"element_size", entry.element_size()}};
            if (entry.op)
                item["type"] = to_string(entry.type), item["op"] = to_string(*entry.op),
                item["wire"] = to_string(entry.wire);
            list.push_back(std::move(item));
        }
        out["entries"] = std::move(list);
        out["next"] = next();
        std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    }

    std::string next() const {
        std::string line = "baton run " + shell_word(folder_);
        if (!types_.empty()) line += " --type " + types_[0];
        if (!ops_.empty()) line += " --op " + ops_[0];
        return line;
    }

    LoweringOptions schedule_;
    codegen::EmitOptions emit_;
    std::string folder_, nan_ = "propagate";
    std::vector<std::string> types_, ops_, architectures_;
    bool host_ = false;
};

}  // namespace

std::unique_ptr<Command> codegen_command() { return std::make_unique<CodegenCommand>(); }

}  // namespace baton::cli
