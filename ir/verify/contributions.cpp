#include <baton/ir/verify/contributions.hpp>

#include <baton/base/error.hpp>

#include <algorithm>

namespace baton::ir {
namespace {

constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
// Fixed, so that runs agree; any elements of large order would do.
constexpr std::array<std::uint64_t, 2> kPoint{0x1234567890abcdefULL % kPrime, 0x0fedcba987654321ULL % kPrime};
constexpr std::size_t kCacheSize = std::size_t{1} << 16;

std::uint64_t multiply(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    std::uint64_t sum =
        static_cast<std::uint64_t>(product & kPrime) + static_cast<std::uint64_t>(product >> 61);
    if (sum >= kPrime) sum -= kPrime;
    return sum;
}
std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t sum = a + b;
    return sum >= kPrime ? sum - kPrime : sum;
}
std::uint64_t minus(std::uint64_t a, std::uint64_t b) { return a >= b ? a - b : a + kPrime - b; }

std::uint64_t mix(std::uint64_t h, std::uint64_t value) {
    h ^= value + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
    h ^= h >> 31;
    h *= 0xbf58476d1ce4e5b9ULL;
    return h ^ (h >> 29);
}

}  // namespace

ContributionTable::ContributionTable(std::int64_t stride, int ranks)
    : stride_(stride), ranks_(ranks), index_(1024, kEmptyPlace), cache_(kCacheSize) {
    intern({Run{0, 0, 1}});
}

std::int64_t ContributionTable::bytes() const {
    return static_cast<std::int64_t>(runs_.size() * sizeof(Run) + sets_.size() * sizeof(Set) +
                                     index_.size() * sizeof(SetId));
}

std::optional<Value> ContributionTable::unite(Value a, Value b) {
    if (a.base > b.base) std::swap(a, b);
    const std::int64_t distance = b.base - a.base;
    auto key = mix(static_cast<std::uint64_t>(distance), static_cast<std::uint64_t>(a.set));
    key = mix(key, static_cast<std::uint64_t>(b.set));
    auto& cached = cache_[key & (kCacheSize - 1)];
    if (cached.a == a.set && cached.b == b.set && cached.distance == distance)
        return Value{a.base, cached.result};
    auto result = hashed_ ? unite_hashed(a, b) : unite_exact(a, b);
    if (result) cached = {a.set, b.set, result->set, distance};
    return result;
}

std::optional<Value> ContributionTable::unite_exact(Value low, Value high) {
    const std::int64_t distance = high.base - low.base;
    const Set a = sets_[static_cast<std::size_t>(low.set)], b = sets_[static_cast<std::size_t>(high.set)];
    work_.clear();
    for (std::uint32_t i = 0; i < b.runs; ++i) {
        Run run = runs_[b.first + i];
        const std::int64_t start = run.residue + distance;
        run.residue = start % stride_;
        run.quotient += static_cast<std::int32_t>(start / stride_);
        work_.push_back(run);
    }
    const auto order = [](const Run& x, const Run& y) {
        return x.residue != y.residue ? x.residue < y.residue : x.quotient < y.quotient;
    };
    // A shift by whole strides keeps the order; another may rotate residues.
    if (!std::is_sorted(work_.begin(), work_.end(), order)) std::sort(work_.begin(), work_.end(), order);
    std::vector<Run> merged;
    merged.reserve(a.runs + b.runs);
    std::uint32_t i = 0;
    std::size_t j = 0;
    while (i < a.runs || j < work_.size()) {
        const bool from_a = j == work_.size() || (i < a.runs && order(runs_[a.first + i], work_[j]));
        const Run run = from_a ? runs_[a.first + i++] : work_[j++];
        if (!merged.empty() && merged.back().residue == run.residue) {
            Run& last = merged.back();
            const std::int64_t end = std::int64_t{last.quotient} + last.count;
            if (run.quotient < end) return std::nullopt;
            if (run.quotient == end) {
                last.count += run.count;
                continue;
            }
        }
        merged.push_back(run);
    }
    return Value{low.base, intern(merged)};
}

Value ContributionTable::unite_hashed(Value low, Value high) {
    const auto& a = sets_[static_cast<std::size_t>(low.set)];
    const auto& b = sets_[static_cast<std::size_t>(high.set)];
    const Fingerprint shift = power(high.base - low.base);
    Fingerprint sum;
    for (std::size_t k = 0; k < 2; ++k) sum[k] = plus(a.fingerprint[k], multiply(b.fingerprint[k], shift[k]));
    return {low.base, intern(a.elements + b.elements, sum)};
}

Value ContributionTable::make(std::vector<ContributionNumber> numbers) {
    const ContributionNumber base = *std::min_element(numbers.begin(), numbers.end());
    for (auto& number : numbers) number -= base;
    std::sort(numbers.begin(), numbers.end(), [this](std::int64_t a, std::int64_t b) {
        const auto ra = a % stride_, rb = b % stride_;
        return ra != rb ? ra < rb : a < b;
    });
    std::vector<Run> runs;
    for (const auto number : numbers) {
        const std::int64_t residue = number % stride_;
        const auto quotient = static_cast<std::int32_t>(number / stride_);
        if (!runs.empty() && runs.back().residue == residue &&
            runs.back().quotient + runs.back().count == quotient)
            ++runs.back().count;
        else
            runs.push_back({residue, quotient, 1});
    }
    if (hashed_)
        return {base,
                intern(static_cast<std::int64_t>(numbers.size()), fingerprint(runs.data(), runs.size()))};
    return {base, intern(runs)};
}

std::vector<ContributionNumber> ContributionTable::members(Value value) const {
    std::vector<ContributionNumber> list;
    if (hashed_) return list;
    const auto& set = sets_[static_cast<std::size_t>(value.set)];
    for (std::uint32_t i = 0; i < set.runs; ++i) {
        const Run& run = runs_[set.first + i];
        for (std::int32_t k = 0; k < run.count; ++k)
            list.push_back(value.base + run.residue + stride_ * (std::int64_t{run.quotient} + k));
    }
    std::sort(list.begin(), list.end());
    return list;
}

ContributionNumber ContributionTable::common(Value a, Value b) const {
    const auto in_a = members(a), in_b = members(b);
    std::vector<ContributionNumber> both;
    std::set_intersection(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), std::back_inserter(both));
    return both.empty() ? -1 : both.front();
}

SetId ContributionTable::add(Set set) {
    set.used = true;
    SetId id = 0;
    if (!free_.empty()) {
        id = free_.back();
        free_.pop_back();
        sets_[static_cast<std::size_t>(id)] = set;
    } else {
        if (sets_.size() >= static_cast<std::size_t>(INT32_MAX))
            throw internal_error("too many sets of contributions");
        id = static_cast<SetId>(sets_.size());
        sets_.push_back(set);
    }
    if (2 * ++indexed_ > index_.size()) {
        rebuild_index(index_.size() * 2);
    } else {
        std::size_t at = set.key & (index_.size() - 1);
        while (index_[at] != kEmptyPlace) at = (at + 1) & (index_.size() - 1);
        index_[at] = id;
    }
    return id;
}

template <class Same>
SetId ContributionTable::find(std::uint64_t key, const Same& same) const {
    for (std::size_t at = key & (index_.size() - 1); index_[at] != kEmptyPlace;
         at = (at + 1) & (index_.size() - 1)) {
        const auto& set = sets_[static_cast<std::size_t>(index_[at])];
        if (set.key == key && same(set)) return index_[at];
    }
    return kEmptyPlace;
}

SetId ContributionTable::intern(const std::vector<Run>& runs) {
    std::uint64_t key = 0;
    std::int64_t elements = 0;
    for (const auto& run : runs) {
        key = mix(key, static_cast<std::uint64_t>(run.residue));
        key = mix(key, (static_cast<std::uint64_t>(static_cast<std::uint32_t>(run.quotient)) << 32) |
                           static_cast<std::uint32_t>(run.count));
        elements += run.count;
    }
    const SetId known = find(key, [&](const Set& set) {
        return set.runs == runs.size() &&
               std::equal(runs.begin(), runs.end(), runs_.begin() + static_cast<std::ptrdiff_t>(set.first));
    });
    if (known != kEmptyPlace) return known;
    Set set;
    set.first = runs_.size();
    set.runs = static_cast<std::uint32_t>(runs.size());
    set.elements = elements;
    set.key = key;
    runs_.insert(runs_.end(), runs.begin(), runs.end());
    return add(set);
}

SetId ContributionTable::intern(std::int64_t elements, const Fingerprint& fingerprint) {
    const std::uint64_t key = mix(mix(static_cast<std::uint64_t>(elements), fingerprint[0]), fingerprint[1]);
    const SetId known =
        find(key, [&](const Set& set) { return set.elements == elements && set.fingerprint == fingerprint; });
    if (known != kEmptyPlace) return known;
    Set set;
    set.elements = elements;
    set.key = key;
    set.fingerprint = fingerprint;
    return add(set);
}

void ContributionTable::rebuild_index(std::size_t capacity) {
    index_.assign(capacity, kEmptyPlace);
    for (std::size_t id = 0; id < sets_.size(); ++id) {
        if (!sets_[id].used) continue;
        std::size_t at = sets_[id].key & (capacity - 1);
        while (index_[at] != kEmptyPlace) at = (at + 1) & (capacity - 1);
        index_[at] = static_cast<SetId>(id);
    }
}

void ContributionTable::collect(const std::function<void(const std::function<void(SetId)>&)>& visit) {
    std::vector<bool> live(sets_.size());
    live[kSingle] = true;
    visit([&](SetId id) {
        if (id != kEmptyPlace) live[static_cast<std::size_t>(id)] = true;
    });
    std::vector<Run> kept;
    free_.clear();
    indexed_ = 0;
    for (std::size_t id = 0; id < sets_.size(); ++id) {
        auto& set = sets_[id];
        set.used = set.used && live[id];
        if (!set.used) {
            free_.push_back(static_cast<SetId>(id));
            continue;
        }
        ++indexed_;
        const std::size_t first = kept.size();
        kept.insert(kept.end(), runs_.begin() + static_cast<std::ptrdiff_t>(set.first),
                    runs_.begin() + static_cast<std::ptrdiff_t>(set.first + set.runs));
        set.first = first;
    }
    runs_ = std::move(kept);
    std::size_t capacity = 1024;
    while (capacity < 4 * indexed_) capacity *= 2;
    rebuild_index(capacity);
    std::fill(cache_.begin(), cache_.end(), Cached{});
}

void ContributionTable::hash_all() {
    if (hashed_) return;
    hashed_ = true;
    const Fingerprint step = power(stride_);
    geometric_.assign(static_cast<std::size_t>(ranks_) + 1, {});
    Fingerprint term{1, 1};
    for (std::size_t i = 0; i < static_cast<std::size_t>(ranks_); ++i)
        for (std::size_t k = 0; k < 2; ++k) {
            geometric_[i + 1][k] = plus(geometric_[i][k], term[k]);
            term[k] = multiply(term[k], step[k]);
        }
    for (auto& set : sets_) {
        if (!set.used) continue;
        set.fingerprint = fingerprint(runs_.data() + set.first, set.runs);
        set.key = mix(mix(static_cast<std::uint64_t>(set.elements), set.fingerprint[0]), set.fingerprint[1]);
        set.first = 0;
        set.runs = 0;
    }
    runs_.clear();
    runs_.shrink_to_fit();
    rebuild_index(index_.size());
    std::fill(cache_.begin(), cache_.end(), Cached{});
}

ContributionTable::Fingerprint ContributionTable::fingerprint(const Run* runs, std::size_t count) const {
    Fingerprint sum{};
    for (std::size_t i = 0; i < count; ++i) {
        const Fingerprint shift = power(runs[i].residue);
        const auto begin = static_cast<std::size_t>(runs[i].quotient);
        const auto end = begin + static_cast<std::size_t>(runs[i].count);
        for (std::size_t k = 0; k < 2; ++k)
            sum[k] = plus(sum[k], multiply(shift[k], minus(geometric_[end][k], geometric_[begin][k])));
    }
    return sum;
}

ContributionTable::Fingerprint ContributionTable::power(std::int64_t exponent) const {
    Fingerprint result{1, 1}, square = kPoint;
    for (; exponent > 0; exponent >>= 1)
        for (std::size_t k = 0; k < 2; ++k) {
            if (exponent & 1) result[k] = multiply(result[k], square[k]);
            square[k] = multiply(square[k], square[k]);
        }
    return result;
}

}  // namespace baton::ir
