// What a schedule must achieve: the kind of collective, who takes part, and what stands where before and
// after.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::ir {

/// The buffers of a rank. `input` is never written; results stand in `output`; `scratch` is free.
enum class Buffer : std::uint8_t { input, output, scratch };
std::string_view to_string(Buffer buffer);

enum class CollectiveKind : std::uint8_t {
    broadcast,
    scatter,
    gather,
    all_gather,
    reduce,
    reduce_scatter,
    all_reduce,
    all_to_all,
    send_recv,
    custom
};
std::string_view to_string(CollectiveKind kind);
/// Throws an input error that lists the kinds.
CollectiveKind parse_collective_kind(std::string_view name, const std::string& where = {});
/// All nine standard kinds, without `custom`.
const std::vector<CollectiveKind>& standard_kinds();

/// Kinds whose buffers are made of one shard per rank; `chunks` then divides one shard, else the whole
/// buffer.
bool has_shards(CollectiveKind kind);
/// Kinds that combine values with an operator.
bool reduces(CollectiveKind kind);
/// Kinds with a root (send_recv: the sender).
bool has_root(CollectiveKind kind);

/// Kinds whose input and output may share memory: all but send_recv and custom.
bool has_in_place_form(CollectiveKind kind);

/// What an input place holds: shard and class, both local to its rank.
struct InputPlace {
    std::int64_t shard = 0, chunk_class = 0;
    bool operator==(const InputPlace&) const = default;
};

/// The input value of `shard` at rank `rank` (a communicator rank), in the class of the place that asks for
/// it.
struct Contribution {
    int rank = 0;
    std::int64_t shard = 0;
    auto operator<=>(const Contribution&) const = default;
};

/// What an output place must hold at the end: the reduction of these contributions (sorted, each once).
struct OutputPlace {
    std::int64_t chunk_class = 0;
    std::vector<Contribution> contributions;
};

/// Per-rank places of a `custom` collective.
struct CustomPlaces {
    std::vector<std::vector<InputPlace>> inputs;    ///< [rank][input index]
    std::vector<std::vector<OutputPlace>> outputs;  ///< [rank][output index]
};

/// One collective on a communicator of `ranks` ranks. Place numbering, with N = size of a group, C = chunks,
/// p = the rank's position in its group:
///   broadcast       input C (root only)    output C
///   reduce          input C                output C (root only)
///   all_reduce      input C                output C
///   scatter         input N*C (root only)  output C
///   gather          input C                output N*C (root only)
///   all_gather      input C                output N*C
///   reduce_scatter  input N*C              output C
///   all_to_all      input N*C              output N*C   (input q*C+k of p ends at output p*C+k of q)
///   send_recv       input C (root only)    output C (peer only)
/// Place s*C+k is class k of shard s. Ranks in no group are relays: they own scratch only.
struct Collective {
    CollectiveKind kind = CollectiveKind::all_reduce;
    int ranks = 1;                         ///< of the communicator, relays included
    std::int64_t chunks = 1;               ///< classes per shard (C)
    int root = 0;                          ///< position in each group
    int peer = -1;                         ///< send_recv: position of the receiver; -1 = (root + 1) mod N
    std::vector<std::int64_t> weights;     ///< per class, each >= 1; empty = all 1. Size C otherwise
    std::vector<std::vector<int>> groups;  ///< disjoint rank lists; empty = one group of all ranks in order
    std::shared_ptr<const CustomPlaces> custom;  ///< for kind `custom`

    /// Throws an input error at `where` when anything is out of range (ranks 1..1048576, chunks 1..2^31,
    /// root inside every group, groups disjoint, not empty and of valid ranks, weights positive).
    void check(const std::string& where = {}) const;

    int group_count() const { return groups.empty() ? 1 : static_cast<int>(groups.size()); }
    /// Size of group g.
    int group_size(int group = 0) const {
        return groups.empty() ? ranks : static_cast<int>(groups[group].size());
    }
    /// Communicator rank of a position of a group.
    int rank_at(int group, int position) const { return groups.empty() ? position : groups[group][position]; }
    /// (group, position) of a rank; {-1, -1} for a relay. O(1) without groups, else O(ranks).
    std::pair<int, int> position_of(int rank) const;
    int receiver(int group = 0) const { return peer >= 0 ? peer : (root + 1) % group_size(group); }

    /// Number of places of `input` or `output` at a rank (0 when the rank has no such buffer).
    std::int64_t places(int rank, Buffer buffer) const;
    /// What stands in an input place / must stand in an output place. REQUIRES: 0 <= index < places.
    InputPlace input(int rank, std::int64_t index) const;
    OutputPlace output(int rank, std::int64_t index) const;
    /// Class of an input or output place without building contributions.
    std::int64_t class_of(int rank, Buffer buffer, std::int64_t index) const;
    /// Shard number of an input or output place (0 for kinds without shards; custom outputs: place order).
    std::int64_t shard_of(int rank, Buffer buffer, std::int64_t index) const;

    /// In place, input place i of a rank is the same memory as this output place; -1 when it has none.
    /// all_reduce, broadcast, reduce, all_to_all: i; all_gather: p*C+i; gather at the root: root*C+i;
    /// reduce_scatter and (at the root) scatter: i - p*C when that is within [0, C); send_recv, custom: -1.
    std::int64_t output_alias(int rank, std::int64_t input_index) const;
    /// Inverse of `output_alias`; -1 when none.
    std::int64_t input_alias(int rank, std::int64_t output_index) const;

    bool operator==(const Collective& other) const;
};

/// "all_reduce of 8 ranks, 8 chunks" with root, groups and weights where they are not the default.
std::string describe(const Collective& collective);

/// A range of elements [begin, end).
struct ElementRange {
    std::int64_t begin = 0, end = 0;
    std::int64_t size() const { return end - begin; }
    bool operator==(const ElementRange&) const = default;
};

/// Cuts a shard of `count` elements into classes by weight, on boundaries of 16 bytes (`unit` = elements per
/// 16 bytes). With W the sum of weights, W_k prefix sums, U = ceil(count/unit) = qW + m: class k covers
/// elements from min(count, unit*(q*W_k + min(W_k, m))) to the same at k+1. Any count works, also fewer
/// elements than classes.
class Partition {
public:
    Partition(const Collective& collective, std::int64_t count, std::int64_t unit);
    /// Elements of class k, relative to the shard's first element.
    ElementRange class_range(std::int64_t k) const;
    /// Tile t of `tiles` of class k: balanced split of its 16-byte units, first tiles one unit longer.
    ElementRange tile_range(std::int64_t k, std::int64_t tile, std::int64_t tiles) const;
    /// Elements of the largest class, rounded up to whole units: the stride of scratch places.
    std::int64_t largest_class() const;

private:
    std::vector<std::int64_t> prefix_;  // empty for equal weights
    std::int64_t classes_, count_, unit_, q_, m_;
};

}  // namespace baton::ir
