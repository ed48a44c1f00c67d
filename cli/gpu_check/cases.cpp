#include <baton/base/json_reader.hpp>
#include <baton/cli/gpu_check/cases.hpp>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace baton::cli {

namespace {

using ir::CollectiveKind;
using ir::DataType;
using ir::Mode;
using ir::ReduceOp;

struct Line {
    CollectiveKind kind;
    const char* pattern;
    Mode mode;
    DataType type = DataType::f32;
    ReduceOp op = ReduceOp::sum;
    bool quick = false;
};

// Spread so that every kind meets every mode, and every pattern some type of another size.
constexpr Line kLines[] = {
    {CollectiveKind::all_reduce, "ring", Mode::staged, DataType::f32, ReduceOp::sum, true},
    {CollectiveKind::all_reduce, "ring", Mode::put, DataType::f16, ReduceOp::sum, true},
    {CollectiveKind::all_reduce, "all_pairs_two_shot", Mode::get, DataType::bf16, ReduceOp::sum, true},
    {CollectiveKind::all_reduce, "recursive_doubling", Mode::staged, DataType::i32, ReduceOp::max},
    {CollectiveKind::all_reduce, "rabenseifner", Mode::staged, DataType::f64, ReduceOp::avg},
    {CollectiveKind::all_reduce, "all_pairs", Mode::staged, DataType::f32, ReduceOp::min},
    {CollectiveKind::reduce_scatter, "ring", Mode::staged, DataType::f32, ReduceOp::sum, true},
    {CollectiveKind::reduce_scatter, "all_pairs", Mode::put, DataType::i64, ReduceOp::sum},
    {CollectiveKind::reduce_scatter, "all_pairs", Mode::get, DataType::bf16, ReduceOp::sum},
    {CollectiveKind::all_gather, "ring", Mode::staged, DataType::f32, ReduceOp::sum, true},
    {CollectiveKind::all_gather, "all_pairs", Mode::put, DataType::f16},
    {CollectiveKind::all_gather, "bruck", Mode::get, DataType::f32},
    {CollectiveKind::broadcast, "chain", Mode::staged, DataType::f32, ReduceOp::sum, true},
    {CollectiveKind::broadcast, "binomial", Mode::put, DataType::u8},
    {CollectiveKind::broadcast, "binomial", Mode::get, DataType::f32},
    {CollectiveKind::reduce, "chain", Mode::staged, DataType::f32, ReduceOp::sum, true},
    {CollectiveKind::reduce, "binomial", Mode::put, DataType::f32, ReduceOp::max},
    {CollectiveKind::reduce, "binomial", Mode::get, DataType::f16, ReduceOp::sum},
    {CollectiveKind::scatter, "direct", Mode::staged, DataType::f32, ReduceOp::sum, true},
    {CollectiveKind::scatter, "direct", Mode::put, DataType::f32},
    {CollectiveKind::scatter, "binomial", Mode::get, DataType::f64},
    {CollectiveKind::gather, "direct", Mode::staged, DataType::f32, ReduceOp::sum, true},
    {CollectiveKind::gather, "binomial", Mode::put, DataType::f64},
    {CollectiveKind::gather, "direct", Mode::get, DataType::f32},
    {CollectiveKind::all_to_all, "direct", Mode::staged, DataType::f32, ReduceOp::sum, true},
    {CollectiveKind::all_to_all, "direct", Mode::put, DataType::f32},
    {CollectiveKind::all_to_all, "bruck", Mode::get, DataType::u8},
    {CollectiveKind::send_recv, "direct", Mode::staged, DataType::f32, ReduceOp::sum, true},
    {CollectiveKind::send_recv, "direct", Mode::put, DataType::f32},
    {CollectiveKind::send_recv, "direct", Mode::get, DataType::f32},
};

GpuCase case_of(const Line& line, int ranks) {
    GpuCase out{{}, line.kind, ranks, line.pattern, line.mode, line.type, line.op};
    out.module = fmt::format("{}_{}_{}_{}_{}", to_string(line.kind), line.pattern, ranks,
                             to_string(line.mode), ir::to_string(line.type));
    if (ir::reduces(line.kind)) out.module += fmt::format("_{}", ir::to_string(line.op));
    return out;
}

}  // namespace

std::vector<GpuCase> gpu_cases(bool quick) {
    std::vector<GpuCase> cases;
    for (const int ranks : {2, 4, 8}) {
        if (quick && ranks > 2) break;
        for (const Line& line : kLines) {
            if (!quick || line.quick) cases.push_back(case_of(line, ranks));
        }
    }
    return cases;
}

std::string to_json(const std::vector<GpuCase>& cases) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const GpuCase& each : cases) {
        nlohmann::ordered_json item = {{"module", each.module},        {"kind", to_string(each.kind)},
                                       {"ranks", each.ranks},          {"pattern", each.pattern},
                                       {"mode", to_string(each.mode)}, {"type", ir::to_string(each.type)}};
        if (ir::reduces(each.kind)) item["op"] = ir::to_string(each.op);
        list.push_back(std::move(item));
    }
    return nlohmann::ordered_json{{"baton", "gpu_check/1"}, {"cases", std::move(list)}}.dump(1) + "\n";
}

std::vector<GpuCase> load_gpu_cases(const std::string& folder) {
    const JsonDocument document = JsonDocument::load(folder + "/cases.json");
    const JsonReader root = document.root();
    root.only_keys({"baton", "cases"});
    if (root.at("baton").string() != "gpu_check/1") throw root.at("baton").error("not a list of GPU checks");
    std::vector<GpuCase> cases;
    for (const JsonReader& item : root.at("cases").elements()) {
        item.only_keys({"module", "kind", "ranks", "pattern", "mode", "type", "op"});
        GpuCase each;
        each.module = item.at("module").string();
        each.kind = ir::parse_collective_kind(item.at("kind").string(), item.at("kind").where());
        each.ranks = static_cast<int>(item.at("ranks").integer(1, 64));
        each.pattern = item.at("pattern").string();
        const std::string mode = item.at("mode").string();
        bool known = false;
        for (const Mode candidate : {Mode::staged, Mode::put, Mode::get}) {
            if (to_string(candidate) == mode) each.mode = candidate, known = true;
        }
        if (!known) throw item.at("mode").error("no transfer mode", "use staged, put or get");
        each.type = ir::parse_data_type(item.at("type").string(), item.at("type").where());
        if (const auto op = item.find("op")) each.op = ir::parse_reduce_op(op->string(), op->where());
        cases.push_back(std::move(each));
    }
    if (cases.empty()) throw root.at("cases").error("no cases");
    return cases;
}

}  // namespace baton::cli
