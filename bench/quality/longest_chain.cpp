#include "longest_chain.hpp"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace baton::bench {
namespace {

// Depth of what stands in each place; a run of places is walked chunk by chunk.
class Depths {
public:
    explicit Depths(int ranks) : of_rank_(static_cast<std::size_t>(ranks)) {}
    int& at(int rank, ir::Buffer buffer, std::int64_t index) {
        return of_rank_[static_cast<std::size_t>(rank)][index * 3 + static_cast<int>(buffer)];
    }

private:
    std::vector<std::unordered_map<std::int64_t, int>> of_rank_;
};

}  // namespace

int longest_chain(const ir::Algorithm& algorithm) {
    Depths depths(algorithm.collective.ranks);
    struct Write {
        int* place;
        int depth;
        bool add;
    };
    std::vector<Write> block;
    int longest = 0;
    const auto settle = [&] {
        for (const Write& write : block) {
            *write.place = write.add ? std::max(*write.place, write.depth) : write.depth;
            longest = std::max(longest, *write.place);
        }
        block.clear();
    };
    auto cursor = algorithm.steps();
    for (ir::Step step; cursor.next(step);) {
        if (!step.in_par || !step.par) settle();
        const int hop = step.crosses() ? 1 : 0;
        for (std::int64_t i = 0; i < step.chunks; ++i) {
            const std::int64_t source = step.src_index + i, destination = step.dst_index + i;
            if (step.op == ir::StepOp::multicast) {
                const int depth = depths.at(step.src_rank, step.src_buffer, source) + 1;
                for (const int member : algorithm.switch_groups[static_cast<std::size_t>(step.dst_rank)])
                    block.push_back({&depths.at(member, step.dst_buffer, destination), depth, false});
            } else if (step.op == ir::StepOp::switch_reduce) {
                int depth = 0;
                for (const int member : algorithm.switch_groups[static_cast<std::size_t>(step.dst_rank)])
                    depth = std::max(depth, depths.at(member, step.src_buffer, source));
                block.push_back({&depths.at(step.src_rank, step.dst_buffer, destination), depth + 1, false});
            } else {
                const int depth = depths.at(step.src_rank, step.src_buffer, source) + hop;
                block.push_back(
                    {&depths.at(step.dst_rank, step.dst_buffer, destination), depth, step.reducing()});
            }
        }
    }
    settle();
    return longest;
}

}  // namespace baton::bench
