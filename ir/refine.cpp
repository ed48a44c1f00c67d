#include <baton/ir/refine.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace baton::ir {
namespace {

constexpr std::int64_t kMostRefinedSteps = 50'000'000;

class Refinement {
public:
    Refinement(const Algorithm& algorithm, const std::vector<std::vector<std::int64_t>>& pieces)
        : algorithm_(algorithm) {
        const Collective& c = algorithm.collective;
        if (c.kind == CollectiveKind::custom)
            throw input_error("classes of a custom collective cannot be cut finer");
        if (static_cast<std::int64_t>(pieces.size()) != c.chunks)
            throw input_error(fmt::format("{} lists of pieces for {} classes", pieces.size(), c.chunks));
        made_.collective = c;
        made_.collective.weights.clear();
        first_.push_back(0);
        for (const std::vector<std::int64_t>& of_class : pieces) {
            if (of_class.empty()) throw input_error("a class without pieces");
            made_.collective.weights.insert(made_.collective.weights.end(), of_class.begin(), of_class.end());
            first_.push_back(static_cast<std::int64_t>(made_.collective.weights.size()));
            most_ = std::max(most_, static_cast<std::int64_t>(of_class.size()));
        }
        made_.collective.chunks = first_.back();
        made_.collective.check();
    }

    Algorithm run() {
        auto cursor = algorithm_.steps();
        for (Step step; cursor.next(step);) {
            if (!step.in_par || !step.par) settle();
            add(step);
            if (static_cast<std::int64_t>(steps_.size()) > kMostRefinedSteps)
                throw input_error(fmt::format("more than {} steps", kMostRefinedSteps));
        }
        made_.name = algorithm_.name;
        made_.over_positions = false;
        made_.vias = algorithm_.vias;
        made_.switch_groups = algorithm_.switch_groups;
        made_.topology_name = algorithm_.topology_name;
        made_.topology_hash = algorithm_.topology_hash;
        if (!steps_.empty())
            made_.body.push_back(
                {ExplicitSteps{std::make_shared<const std::vector<Step>>(std::move(steps_))}, 0});
        return std::move(made_);
    }

private:
    using ScratchPlace = std::pair<int, std::int64_t>;

    // The class that a place holds; -1 when nothing was ever written there.
    std::int64_t class_at(int rank, Buffer buffer, std::int64_t index) const {
        if (buffer != Buffer::scratch) return index % algorithm_.collective.chunks;
        const auto found = scratch_.find({rank, index});
        return found == scratch_.end() ? -1 : found->second;
    }
    std::int64_t index_of(Buffer buffer, std::int64_t index) const {
        if (buffer == Buffer::scratch) return index * most_;
        const std::int64_t chunks = algorithm_.collective.chunks;
        return index / chunks * first_.back() + first_[at(index % chunks)];
    }

    // Writes of a par block become known when it ends.
    void settle() {
        for (const auto& [place, chunk_class] : written_) scratch_[place] = chunk_class;
        written_.clear();
    }

    void add(const Step& step) {
        // Places of switch steps are the same at all members; the single rank knows the class.
        const bool group_sends = step.op == StepOp::switch_reduce;
        const bool group_receives = step.op == StepOp::multicast;
        const std::size_t before = steps_.size();
        for (std::int64_t i = 0; i < step.chunks; ++i) {
            const int source = group_sends ? member(step.dst_rank) : step.src_rank;
            std::int64_t chunk_class = class_at(source, step.src_buffer, step.src_index + i);
            if (chunk_class < 0 && step.dst_buffer != Buffer::scratch)
                chunk_class = (step.dst_index + i) % algorithm_.collective.chunks;
            if (chunk_class < 0) chunk_class = 0;  // reads what nobody wrote: for verification to tell
            if (step.dst_buffer == Buffer::scratch) {
                const std::int64_t index = step.dst_index + i;
                if (group_receives) {
                    for (const int rank : algorithm_.switch_groups[at(step.dst_rank)])
                        written_[{rank, index}] = chunk_class;
                } else {
                    written_[{group_sends ? step.src_rank : step.dst_rank, index}] = chunk_class;
                }
            }
            append(step, index_of(step.src_buffer, step.src_index + i),
                   index_of(step.dst_buffer, step.dst_index + i),
                   first_[at(chunk_class) + 1] - first_[at(chunk_class)], before);
        }
        // What was one step reads everything before it writes.
        if (steps_.size() - before > 1 && !step.in_par && step.src_rank == step.dst_rank) {
            for (std::size_t s = before; s < steps_.size(); ++s) {
                steps_[s].in_par = 1;
                steps_[s].par = s > before;
            }
        }
        if (!step.in_par) settle();
    }

    int member(int group) const { return algorithm_.switch_groups[at(group)].front(); }

    void append(const Step& whole, std::int64_t source, std::int64_t destination, std::int64_t run,
                std::size_t first_of_step) {
        if (std::max(source, destination) + run >= std::int64_t{1} << 31)
            throw input_error("places of a refined algorithm are outside 0..2^31-1");
        if (steps_.size() > first_of_step) {
            Step& last = steps_.back();
            if (last.src_index + last.chunks == source && last.dst_index + last.chunks == destination) {
                last.chunks += static_cast<std::int32_t>(run);
                return;
            }
        }
        Step step = whole;
        step.src_index = static_cast<std::int32_t>(source);
        step.dst_index = static_cast<std::int32_t>(destination);
        step.chunks = static_cast<std::int32_t>(run);
        if (steps_.size() > first_of_step) step.par = whole.in_par;
        steps_.push_back(step);
    }

    const Algorithm& algorithm_;
    Algorithm made_;
    std::vector<std::int64_t> first_;  // per class: number of its first piece; one more at the end
    std::int64_t most_ = 1;            // pieces of a class
    std::map<ScratchPlace, std::int64_t> scratch_, written_;
    std::vector<Step> steps_;
};

}  // namespace

Algorithm refine(const Algorithm& algorithm, const std::vector<std::vector<std::int64_t>>& pieces) {
    return Refinement(algorithm, pieces).run();
}

CommonDivision common_division(const std::vector<std::vector<std::int64_t>>& divisions) {
    constexpr std::int64_t kMostDenominator = std::int64_t{1} << 40;
    std::int64_t whole = 1;
    std::vector<std::int64_t> sums;
    for (const std::vector<std::int64_t>& weights : divisions) {
        std::int64_t sum = 0, divisor = 0;
        for (const std::int64_t weight : weights) {
            if (weight < 1 || weight > kMostDenominator) throw input_error("a weight is out of range");
            sum += weight;
            divisor = std::gcd(divisor, weight);
            if (sum > kMostDenominator) throw input_error("weights sum to more than 2^40");
        }
        if (sum == 0) throw input_error("a division without classes");
        const std::int64_t reduced = sum / divisor;
        const std::int64_t factor = reduced / std::gcd(whole, reduced);
        if (whole > kMostDenominator / factor)
            throw input_error("divisions of data have no common denominator below 2^40");
        whole *= factor;
        sums.push_back(sum);
    }
    std::set<std::int64_t> boundaries = {0};
    // Boundary b of sum s is b * whole / s: exact, because s / gcd divides whole.
    const auto scaled = [&](std::int64_t boundary, std::int64_t sum) {
        __extension__ using Product = __int128;
        return static_cast<std::int64_t>(static_cast<Product>(boundary) * whole / sum);
    };
    for (std::size_t d = 0; d < divisions.size(); ++d) {
        std::int64_t boundary = 0;
        for (const std::int64_t weight : divisions[d]) boundaries.insert(scaled(boundary += weight, sums[d]));
    }
    std::int64_t common = 0, before = 0;
    for (const std::int64_t boundary : boundaries) common = std::gcd(common, boundary);
    CommonDivision made;
    for (std::size_t d = 0; d < divisions.size(); ++d) {
        made.pieces.emplace_back();
        auto next = std::next(boundaries.begin());
        std::int64_t boundary = before = 0;
        for (const std::int64_t weight : divisions[d]) {
            boundary += weight;
            made.pieces.back().emplace_back();
            for (; next != boundaries.end() && *next <= scaled(boundary, sums[d]); ++next) {
                made.pieces.back().back().push_back((*next - before) / common);
                before = *next;
            }
        }
    }
    return made;
}

}  // namespace baton::ir
