// Sets of contributions, each stored once and shared by every place that holds the same set up to a shift.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace baton::ir {

/// The input value in virtual place v = shard*C + class of rank p is the number p*stride + v. Then a run of
/// chunks of one rank, and equal chunks of neighboring ranks, are arithmetic sequences.
using ContributionNumber = std::int64_t;
using SetId = std::int32_t;
inline constexpr SetId kEmptyPlace = -1;

/// What one place holds: a set of contributions, shifted by `base`. In an interval of places base grows by 1.
struct Value {
    ContributionNumber base = 0;  ///< the smallest contribution
    SetId set = kEmptyPlace;
    bool operator==(const Value&) const = default;
};

/// Interns sets relative to their smallest member. Exact sets are sorted runs of ranks; above the memory
/// budget each becomes its size and a 122-bit polynomial fingerprint (sum of x^member modulo 2^61-1, for two
/// fixed x), which shifts by a product, so that intervals keep working.
class ContributionTable {
public:
    ContributionTable(std::int64_t stride, int ranks);

    static constexpr SetId kSingle = 0;  ///< the set of one member

    /// The union; nothing when a member is in both (exact sets only).
    std::optional<Value> unite(Value a, Value b);
    /// The set of these numbers (each once, any order).
    Value make(std::vector<ContributionNumber> numbers);
    /// Members, ascending; empty when hashed.
    std::vector<ContributionNumber> members(Value value) const;
    std::int64_t size(Value value) const { return sets_[static_cast<std::size_t>(value.set)].elements; }
    /// A member of both sets; -1 when none or hashed.
    ContributionNumber common(Value a, Value b) const;

    bool hashed() const { return hashed_; }
    std::int64_t bytes() const;
    /// Frees sets that `visit` does not name; call between steps only. `visit(mark)` must call mark for each
    /// set in use.
    void collect(const std::function<void(const std::function<void(SetId)>&)>& visit);
    /// From exact sets to fingerprints.
    void hash_all();

private:
    /// Members residue + stride*(quotient .. quotient+count-1), relative to the smallest member of the set.
    struct Run {
        std::int64_t residue = 0;
        std::int32_t quotient = 0, count = 0;
        bool operator==(const Run&) const = default;
    };
    using Fingerprint = std::array<std::uint64_t, 2>;
    struct Set {
        std::size_t first = 0;  ///< in runs_
        std::uint32_t runs = 0;
        bool used = false;
        std::int64_t elements = 0;
        std::uint64_t key = 0;
        Fingerprint fingerprint{};
    };
    struct Cached {
        SetId a = kEmptyPlace, b = kEmptyPlace, result = kEmptyPlace;
        std::int64_t distance = 0;
    };

    std::optional<Value> unite_exact(Value low, Value high);
    Value unite_hashed(Value low, Value high);
    SetId intern(const std::vector<Run>& runs);
    SetId intern(std::int64_t elements, const Fingerprint& fingerprint);
    SetId add(Set set);
    template <class Same>
    SetId find(std::uint64_t key, const Same& same) const;
    void grow_index();
    void rebuild_index(std::size_t capacity);
    Fingerprint fingerprint(const Run* runs, std::size_t count) const;
    Fingerprint power(std::int64_t exponent) const;

    std::int64_t stride_;
    int ranks_;
    bool hashed_ = false;
    std::vector<Run> runs_;
    std::vector<Set> sets_;
    std::vector<SetId> free_;
    std::vector<SetId> index_;  // open addressing, power of two
    std::size_t indexed_ = 0;
    std::vector<Cached> cache_;
    std::vector<Run> work_;
    std::vector<Fingerprint> geometric_;  // [i] = sum over j < i of x^(stride*j)
};

}  // namespace baton::ir
