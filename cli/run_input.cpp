#include <baton/base/error.hpp>
#include <baton/base/json_reader.hpp>
#include <baton/cli/run_input.hpp>
#include <baton/codegen/emit.hpp>
#include <baton/ir/plan_set.hpp>
#include <baton/ir/program_json.hpp>
#include <baton/ir/schedule.hpp>
#include <baton/ir/verify.hpp>

#include <fmt/format.h>
#include <filesystem>

namespace baton::cli {

namespace {

/// Largest count whose size is at most `bytes`.
std::int64_t count_of_size(const ir::Collective& collective, ir::DataType type, std::int64_t bytes) {
    const std::int64_t shards = ir::has_shards(collective.kind) ? collective.group_size() : 1;
    return bytes / (shards * ir::size_of(type));
}

ir::Program program_of(const ir::Schedule& schedule, const codegen::LowerOptions& options) {
    if (const auto* program = std::get_if<ir::Program>(&schedule)) return *program;
    return codegen::lower(std::get<ir::Algorithm>(schedule), options);
}

void build(RunInput& input, const RunInputOptions& options) {
    const ir::ProgramReport report = ir::verify(*input.program);
    if (report.assurance == ir::Assurance::not_proven) {
        throw check_error("the program is too large to be proven right, and is not run", input.name,
                          "use fewer ranks or chunks");
    }
    if (!options.emit) return;
    codegen::EmitOptions emit;
    emit.entries = {{input.arguments.type, input.arguments.op, input.arguments.nan}};
    emit.instances = options.instances;
    codegen::Module module = codegen::emit(*input.program, emit, &report);
    input.module = runtime::Module::from_source(std::move(module.manifest), std::move(module.source));
}

RunInput load_folder(const std::string& path, const RunInputOptions& options) {
    RunInput input;
    input.module = runtime::Module::load(path);
    const codegen::Manifest& manifest = input.module->manifest();
    input.name = input.module->name();
    input.collective = manifest.collective;
    if (options.load.ranks && *options.load.ranks != input.collective.ranks) {
        throw input_error(fmt::format("the module is for {} ranks", input.collective.ranks), path,
                          "emit it again for another number");
    }
    if (options.load.root && *options.load.root != input.collective.root) {
        throw input_error(fmt::format("the module is for root {}", input.collective.root), path,
                          "emit it again for another root");
    }
    if (!manifest.program_file.empty()) {
        const std::filesystem::path folder = std::filesystem::is_directory(path)
                                                 ? std::filesystem::path(path)
                                                 : std::filesystem::path(path).parent_path();
        const std::string file = (folder / manifest.program_file).string();
        if (std::filesystem::exists(file)) input.program = ir::load_program(file);
    }
    return input;
}

void choose_row(RunInput& input, const JsonReader& root, const std::string& path,
                const RunInputOptions& options) {
    ir::PlanSet set = ir::read_plan_set(root);
    if (set.folder.empty()) set.folder = std::filesystem::path(path).parent_path().string();
    if (options.load.ranks && *options.load.ranks != set.ranks)
        throw input_error(fmt::format("the plan set is for {} ranks", set.ranks), path);
    if (set.plans.empty()) throw input_error("the plan set is empty", path);
    ir::PlanCall call;
    call.kind = set.plans.front().kind;
    call.root = options.load.root.value_or(set.plans.front().root.value_or(0));
    call.in_place = options.in_place;
    call.type = options.arguments.type;
    ir::Collective shape;
    shape.kind = call.kind, shape.ranks = set.ranks, shape.groups = set.groups;
    call.size.count = options.size.value_or(0);
    if (!options.size) {
        runtime::CallArguments arguments = options.arguments;
        call.size.count = size_of_call(shape, arguments);
    }
    const ir::Plan* plan = set.find(call);
    if (plan == nullptr) {
        throw input_error(fmt::format("no plan of the set serves {} bytes", call.size.count), path,
                          ir::refusal(set.plans.front(), call));
    }
    input.plan = plan->id;
    input.tiles = plan->tiles;
    codegen::LowerOptions lower = options.lower;
    if (lower.slots == 0) lower.slots = plan->slots;
    if (lower.channels == 1) lower.channels = plan->channels;
    if (plan->mode && lower.mode == codegen::ModePreference::automatic)
        lower.mode = codegen::parse_mode_preference(to_string(*plan->mode));
    lower.wide = lower.wide || plan->wide;
    const ir::Schedule schedule = set.schedule_of(*plan, call.root);
    input.name = ir::name_of(schedule);
    input.program = program_of(schedule, lower);
}

}  // namespace

RunInput load_run_input(const std::string& path, const RunInputOptions& options) {
    RunInput input;
    std::error_code error;
    const bool folder = std::filesystem::is_directory(path, error);
    if (folder) {
        input = load_folder(path, options);
    } else {
        const bool cbor = path.ends_with(".cbor");
        std::optional<JsonDocument> document;
        std::string format;
        if (!cbor && path != "-") {
            document.emplace(JsonDocument::load(path));
            if (const auto field = document->root().find("baton"); field && field->is_string())
                format = field->string();
        }
        if (format == "manifest/1") {
            input = load_folder(path, options);
        } else if (format == "plans/1") {
            choose_row(input, document->root(), path, options);
        } else {
            const ir::Schedule schedule = ir::load_schedule(path, options.load);
            input.name = ir::name_of(schedule);
            input.program = program_of(schedule, options.lower);
        }
    }
    if (input.program) input.collective = input.program->collective;
    input.arguments = options.arguments;
    if (options.size)
        input.arguments.count = count_of_size(input.collective, options.arguments.type, *options.size);
    if (!input.module) build(input, options);
    return input;
}

}  // namespace baton::cli
