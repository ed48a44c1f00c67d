// What every place of every rank holds while an Algorithm is followed step by step, out of place or in place.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/ir/verify/place_map.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace baton::ir {

/// What an output must hold: `count` places from `begin` with values (base, set), (base+1, set), ...
struct Goal {
    std::int64_t begin = 0, count = 0;
    Value value;
};

/// The facts of a collective that the check asks for at every step, looked up once.
class Places {
public:
    /// Throws an input error when a place number would pass 2^31 or a contribution number 2^62.
    explicit Places(const Collective& collective);

    const Collective& collective() const { return collective_; }
    std::int64_t stride() const { return stride_; }
    std::int64_t count(int rank, Buffer buffer) const {
        const auto& own = ranks_[static_cast<std::size_t>(rank)];
        return buffer == Buffer::input ? own.inputs : own.outputs;
    }
    /// The first of the aliased input places, how many there are, and the output place of the first.
    struct Alias {
        std::int64_t input = 0, count = 0, output = 0;
    };
    Alias alias(int rank) const { return ranks_[static_cast<std::size_t>(rank)].alias; }
    bool any_alias() const { return any_alias_; }
    /// Contribution number of an input place.
    ContributionNumber number(int rank, std::int64_t input_index) const;
    /// Appends the initial values of input places.
    void initial(int rank, std::int64_t begin, std::int64_t count, std::vector<Piece>& pieces) const;
    /// What a rank's output must hold, ascending. Call after the last `collect` of the table.
    std::vector<Goal> goals(int rank, ContributionTable& table) const;
    /// "the input of rank 3", "shard 2 of rank 3".
    std::string describe(ContributionNumber number) const;
    std::int64_t chunk_class(ContributionNumber number) const { return number % collective_.chunks; }

private:
    struct Rank {
        int group = -1, position = -1;
        std::int64_t inputs = 0, outputs = 0;
        Alias alias;
    };
    Value all_of_group(int group, std::int64_t shard, ContributionTable& table) const;

    const Collective& collective_;
    std::int64_t stride_ = 1;
    bool any_alias_ = false;
    std::vector<Rank> ranks_;
    mutable std::vector<Value> all_;  // per group: the reduction of shard 0 over all its ranks
};

/// The state of all ranks. `in_place`: aliased input places live in the output.
class Memory {
public:
    Memory(const Places& places, bool in_place);

    bool in_place() const { return in_place_; }
    /// Appends what [begin, begin+count) of a buffer holds.
    void read(int rank, Buffer buffer, std::int64_t begin, std::int64_t count,
              std::vector<Piece>& pieces) const;
    /// `buffer` is not input.
    void write(int rank, Buffer buffer, std::int64_t begin, const std::vector<Piece>& pieces);
    /// Whether two runs of one rank share some places but do not start at the same one.
    bool partial_overlap(int rank, Buffer a, std::int64_t a_begin, Buffer b, std::int64_t b_begin,
                         std::int64_t count) const;
    std::int64_t bytes() const;

    template <class Visit>
    void each_set(const Visit& visit) const {
        for (const auto& map : outputs_) map.each_set(visit);
        for (const auto& map : scratch_) map.each_set(visit);
    }

private:
    const Places& places_;
    bool in_place_;
    std::vector<PlaceMap> outputs_, scratch_;
};

}  // namespace baton::ir
