#include <baton/cli/bandwidth.hpp>

#include <algorithm>

namespace baton::cli {

std::int64_t size_of_call(const ir::Collective& collective, const runtime::CallArguments& arguments) {
    std::int64_t most = 0;
    for (int r = 0; r < collective.ranks; ++r) {
        for (const ir::Buffer buffer : {ir::Buffer::input, ir::Buffer::output}) {
            most =
                std::max(most, runtime::buffer_bytes(collective, r, buffer, arguments.count, arguments.type));
        }
    }
    return most;
}

double bus_factor(const ir::Collective& collective) {
    const double n = collective.group_size();
    switch (collective.kind) {
        case ir::CollectiveKind::all_reduce: return 2 * (n - 1) / n;
        case ir::CollectiveKind::all_gather:
        case ir::CollectiveKind::reduce_scatter:
        case ir::CollectiveKind::all_to_all: return (n - 1) / n;
        default: return 1;
    }
}

}  // namespace baton::cli
