// Any bytes: a plan set or an input error. What is read prints and reads back the same, and every lookup that
// finds a plan finds one that serves the call.
#include <baton/base/error.hpp>
#include <baton/ir/plan_set.hpp>

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace baton;
    try {
        const ir::PlanSet set = ir::parse_plan_set({reinterpret_cast<const char*>(data), size}, "fuzz");
        const std::string text = ir::to_json(set);
        if (ir::to_json(ir::parse_plan_set(text)) != text) __builtin_trap();
        for (const ir::Plan& plan : set.plans) {
            ir::PlanCall call;
            call.kind = plan.kind;
            call.root = plan.root.value_or(0);
            call.in_place = plan.in_place.value_or(false);
            if (!plan.types.empty()) call.type = plan.types.front();
            call.size = plan.from;
            const ir::Plan* found = set.find(call);
            if (found == nullptr || !ir::refusal(*found, call).empty()) __builtin_trap();
        }
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) __builtin_trap();
    }
    return 0;
}
