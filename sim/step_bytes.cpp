#include <baton/sim/step_bytes.hpp>

#include <baton/base/index.hpp>

#include <algorithm>

namespace baton::sim {
namespace {

__extension__ typedef __int128 Wide;

constexpr std::int64_t kUnit = 16;

int largest_group(const ir::Collective& collective) {
    int largest = 1;
    for (int g = 0; g < collective.group_count(); ++g) largest = std::max(largest, collective.group_size(g));
    return largest;
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0); }

// The largest buffer of any rank, in weights of its places.
std::int64_t custom_weight(const ir::Collective& collective) {
    std::int64_t largest = 1;
    for (int rank = 0; rank < collective.ranks; ++rank) {
        for (const ir::Buffer buffer : {ir::Buffer::input, ir::Buffer::output}) {
            std::int64_t total = 0;
            for (std::int64_t i = 0; i < collective.places(rank, buffer); ++i)
                total += collective.weights.empty()
                             ? 1
                             : collective.weights[at(collective.class_of(rank, buffer, i))];
            largest = std::max(largest, total);
        }
    }
    return largest;
}

}  // namespace

Bytes shard_bytes(const ir::Collective& collective, Bytes size) {
    if (ir::has_shards(collective.kind)) return {size.count / largest_group(collective)};
    if (collective.kind != ir::CollectiveKind::custom) return size;
    std::int64_t total = collective.weights.empty() ? collective.chunks : 0;
    for (const std::int64_t weight : collective.weights) total += weight;
    const Wide product = static_cast<Wide>(size.count) * total;
    const std::int64_t largest = custom_weight(collective);
    return {static_cast<std::int64_t>(product / largest)};
}

double bus_factor(const ir::Collective& collective) {
    const double n = largest_group(collective);
    if (n < 2) return 1;
    switch (collective.kind) {
        case ir::CollectiveKind::all_reduce: return 2 * (n - 1) / n;
        case ir::CollectiveKind::scatter:
        case ir::CollectiveKind::gather:
        case ir::CollectiveKind::all_gather:
        case ir::CollectiveKind::reduce_scatter:
        case ir::CollectiveKind::all_to_all: return (n - 1) / n;
        default: return 1;
    }
}

double StepBytes::unevenness(const ir::Collective& collective, Bytes shard) {
    std::int64_t total = collective.weights.empty() ? collective.chunks : 0;
    for (const std::int64_t weight : collective.weights) total += weight;
    const std::int64_t over = shard.count % (total * kUnit);
    return over == 0 ? 0 : static_cast<double>(total * kUnit - over) / static_cast<double>(shard.count);
}

StepBytes::StepBytes(const ir::Collective& collective, Bytes shard, std::int64_t tiles, bool even)
    : classes_(collective.chunks), tiles_(tiles) {
    std::int64_t total = classes_;
    if (!collective.weights.empty()) {
        prefix_.push_back(0);
        for (const std::int64_t weight : collective.weights) prefix_.push_back(prefix_.back() + weight);
        total = prefix_.back();
    }
    const std::int64_t all = divide_up(shard.count, kUnit);
    quotient_ = all / total;
    remainder_ = all % total;
    if (even) {
        quotient_ += remainder_ > 0;
        remainder_ = 0;
        return;
    }
    if (all * kUnit == shard.count) return;
    // The last unit lies in the last class that has any, in that class's last tile that has any.
    missing_ = all * kUnit - shard.count;
    last_class_ = quotient_ > 0 ? classes_ - 1 : 0;
    while (quotient_ == 0 && class_units(last_class_) > 0 && last_class_ + 1 < classes_ &&
           class_units(last_class_ + 1) > 0)
        ++last_class_;
    last_tile_ = std::min(class_units(last_class_), tiles_) - 1;
}

std::int64_t StepBytes::class_units(std::int64_t chunk_class) const {
    const auto before = [&](std::int64_t k) {
        const std::int64_t w = prefix_.empty() ? k : prefix_[at(k)];
        return quotient_ * w + std::min(w, remainder_);
    };
    return before(chunk_class + 1) - before(chunk_class);
}

// Units of one tile in classes [begin, end), 0 <= begin <= end <= classes.
std::int64_t StepBytes::units(std::int64_t begin, std::int64_t end, std::int64_t tile) const {
    const auto of_tile = [&](std::int64_t units) { return units / tiles_ + (tile < units % tiles_ ? 1 : 0); };
    if (prefix_.empty()) {
        const std::int64_t longer = std::min(end, remainder_) - std::min(begin, remainder_);
        return longer * of_tile(quotient_ + 1) + (end - begin - longer) * of_tile(quotient_);
    }
    std::int64_t sum = 0;
    for (std::int64_t k = begin; k < end; ++k) sum += of_tile(class_units(k));
    return sum;
}

std::int64_t StepBytes::operator()(std::span<const ClassRun> runs, std::int64_t tile) const {
    std::int64_t sum = 0;
    const auto add = [&](std::int64_t begin, std::int64_t end) {
        sum += kUnit * units(begin, end, tile);
        if (missing_ > 0 && tile == last_tile_ && begin <= last_class_ && last_class_ < end) sum -= missing_;
    };
    for (const ClassRun& run : runs) {
        std::int64_t first = run.first, left = run.count;
        if (first + left > classes_) {
            add(first, classes_);
            left -= classes_ - first;
            first = 0;
            if (left >= classes_) {
                const std::int64_t before = sum;
                sum = 0;
                add(0, classes_);
                sum = before + (left / classes_) * sum;
                left %= classes_;
            }
        }
        add(first, first + left);
    }
    return sum;
}

}  // namespace baton::sim
