#include <baton/ir/reduce_op.hpp>

#include <baton/base/error.hpp>

#include <array>

namespace baton::ir {
namespace {

constexpr std::array<std::string_view, 13> kNames = {"sum",  "prod", "max", "min",  "avg",    "land",  "lor",
                                                     "lxor", "band", "bor", "bxor", "maxloc", "minloc"};

}  // namespace

const std::vector<ReduceOp>& all_reduce_ops() {
    static const std::vector<ReduceOp> ops = [] {
        std::vector<ReduceOp> all;
        for (std::size_t i = 0; i < kNames.size(); ++i) all.push_back(static_cast<ReduceOp>(i));
        return all;
    }();
    return ops;
}

std::string_view to_string(ReduceOp op) {
    const auto number = static_cast<std::size_t>(op);
    if (number >= kNames.size())
        throw input_error("there is no operator with number " + std::to_string(number));
    return kNames[number];
}

ReduceOp parse_reduce_op(std::string_view name, const std::string& where) {
    for (std::size_t i = 0; i < kNames.size(); ++i)
        if (kNames[i] == name) return static_cast<ReduceOp>(i);
    std::string names;
    for (std::string_view each : kNames) names += (names.empty() ? "" : " ") + std::string(each);
    throw input_error("'" + std::string(name.substr(0, 64)) + "' is not an operator", where,
                      "use one of: " + names);
}

bool is_reduce_op(int value) { return value >= 0 && value < static_cast<int>(kNames.size()); }

std::string_view to_string(NanMode mode) { return mode == NanMode::ignore ? "ignore" : "propagate"; }

NanMode parse_nan_mode(std::string_view name, const std::string& where) {
    if (name == "propagate") return NanMode::propagate;
    if (name == "ignore") return NanMode::ignore;
    throw input_error("'" + std::string(name.substr(0, 64)) + "' is not a NaN rule", where,
                      "use one of: propagate ignore");
}

bool valid(ReduceOp op, DataType type) {
    switch (op) {
        case ReduceOp::sum:
        case ReduceOp::prod:
        case ReduceOp::max:
        case ReduceOp::min:
        case ReduceOp::avg: return !is_pair(type);
        case ReduceOp::land:
        case ReduceOp::lor:
        case ReduceOp::lxor:
        case ReduceOp::band:
        case ReduceOp::bor:
        case ReduceOp::bxor: return is_integer(type);
        case ReduceOp::maxloc:
        case ReduceOp::minloc: return is_pair(type);
    }
    return false;
}

std::vector<DataType> valid_types(ReduceOp op) {
    std::vector<DataType> types;
    for (DataType type : all_data_types())
        if (valid(op, type)) types.push_back(type);
    return types;
}

void check_valid(ReduceOp op, DataType type, const std::string& where) {
    if (valid(op, type)) return;
    std::string types, ops;
    for (DataType each : valid_types(op)) types += " " + std::string(to_string(each));
    for (ReduceOp each : all_reduce_ops())
        if (valid(each, type)) ops += " " + std::string(to_string(each));
    throw input_error(
        "operator " + std::string(to_string(op)) + " has no meaning on type " + std::string(to_string(type)),
        where,
        std::string(to_string(op)) + " takes:" + types + "; " + std::string(to_string(type)) +
            " allows:" + ops);
}

bool always_wide(ReduceOp op, DataType type) {
    // bf16 has the range of f32: its partial sums cannot saturate early.
    return op == ReduceOp::avg && is_narrow_float(type) && type != DataType::bf16;
}

DataType wire_type(ReduceOp op, DataType type, bool wide) {
    return is_narrow_float(type) && (wide || always_wide(op, type)) ? DataType::f32 : type;
}

}  // namespace baton::ir
