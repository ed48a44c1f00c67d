#include <baton/ir/collective.hpp>

#include <baton/base/error.hpp>

#include <doctest/doctest.h>
#include <algorithm>
#include <random>

using namespace baton::ir;

namespace {

Collective make(CollectiveKind kind, int ranks, std::int64_t chunks, int root = 0) {
    Collective c;
    c.kind = kind;
    c.ranks = ranks;
    c.chunks = chunks;
    c.root = root;
    return c;
}

bool is_kind(const std::string& name) {
    try {
        parse_collective_kind(name);
        return true;
    } catch (const baton::Error&) {
        return false;
    }
}

}  // namespace

TEST_CASE("kinds have names that parse back") {
    CHECK(standard_kinds().size() == 9);
    for (const auto kind : standard_kinds()) CHECK(parse_collective_kind(to_string(kind)) == kind);
    CHECK(is_kind("custom"));
    CHECK_FALSE(is_kind("allreduce"));
    CHECK_FALSE(is_kind(""));
}

TEST_CASE("places of each kind are as documented") {
    const int n = 4, root = 2;
    const std::int64_t c = 3;
    struct Row {
        CollectiveKind kind;
        std::int64_t in_root, in_other, out_root, out_other;
    };
    const Row rows[] = {{CollectiveKind::broadcast, c, 0, c, c},
                        {CollectiveKind::reduce, c, c, c, 0},
                        {CollectiveKind::all_reduce, c, c, c, c},
                        {CollectiveKind::scatter, n * c, 0, c, c},
                        {CollectiveKind::gather, c, c, n * c, 0},
                        {CollectiveKind::all_gather, c, c, n * c, n * c},
                        {CollectiveKind::reduce_scatter, n * c, n * c, c, c},
                        {CollectiveKind::all_to_all, n * c, n * c, n * c, n * c}};
    for (const auto& row : rows) {
        const auto collective = make(row.kind, n, c, root);
        collective.check();
        for (int rank = 0; rank < n; ++rank) {
            CAPTURE(to_string(row.kind));
            CHECK(collective.places(rank, Buffer::input) == (rank == root ? row.in_root : row.in_other));
            CHECK(collective.places(rank, Buffer::output) == (rank == root ? row.out_root : row.out_other));
        }
    }
    auto p2p = make(CollectiveKind::send_recv, 4, 2, 3);
    CHECK(p2p.receiver() == 0);
    p2p.peer = 1;
    for (int rank = 0; rank < 4; ++rank) {
        CHECK(p2p.places(rank, Buffer::input) == (rank == 3 ? 2 : 0));
        CHECK(p2p.places(rank, Buffer::output) == (rank == 1 ? 2 : 0));
    }
}

TEST_CASE("every contribution of an output place is an input place of the same class") {
    for (const auto kind : standard_kinds())
        for (int n = 1; n <= 5; ++n)
            for (int root = 0; root < (has_root(kind) ? n : 1); ++root) {
                auto c = make(kind, n + 1, 2, root);
                c.groups = {{}};
                for (int p = n - 1; p >= 0; --p) c.groups[0].push_back(p);  // reversed order, rank n relays
                c.check();
                CHECK(c.places(n, Buffer::input) == 0);
                CHECK(c.places(n, Buffer::output) == 0);
                for (int rank = 0; rank < n; ++rank)
                    for (std::int64_t i = 0; i < c.places(rank, Buffer::output); ++i) {
                        const auto place = c.output(rank, i);
                        CHECK(place.contributions.size() ==
                              (reduces(kind) ? static_cast<std::size_t>(n) : 1));
                        CHECK(std::is_sorted(place.contributions.begin(), place.contributions.end()));
                        CHECK(place.chunk_class == c.class_of(rank, Buffer::output, i));
                        for (const auto& contribution : place.contributions) {
                            bool found = false;
                            for (std::int64_t j = 0; j < c.places(contribution.rank, Buffer::input); ++j)
                                found |= c.input(contribution.rank, j) ==
                                         InputPlace{contribution.shard, place.chunk_class};
                            CHECK(found);
                        }
                    }
            }
}

TEST_CASE("aliases are inverse to each other and keep the class") {
    for (const auto kind : standard_kinds())
        for (int n = 1; n <= 5; ++n)
            for (int root = 0; root < (has_root(kind) ? n : 1); ++root) {
                const auto c = make(kind, n, 3, root);
                for (int rank = 0; rank < n; ++rank) {
                    std::int64_t aliased = 0;
                    for (std::int64_t i = 0; i < c.places(rank, Buffer::input); ++i) {
                        const auto o = c.output_alias(rank, i);
                        if (o < 0) continue;
                        ++aliased;
                        CHECK(c.input_alias(rank, o) == i);
                        CHECK(c.class_of(rank, Buffer::input, i) == c.class_of(rank, Buffer::output, o));
                    }
                    const bool both = c.places(rank, Buffer::input) > 0 && c.places(rank, Buffer::output) > 0;
                    const auto smaller =
                        std::min(c.places(rank, Buffer::input), c.places(rank, Buffer::output));
                    CHECK(aliased == (both && kind != CollectiveKind::send_recv ? smaller : 0));
                }
            }
    const auto rs = make(CollectiveKind::reduce_scatter, 4, 2);
    CHECK(rs.output_alias(3, 6) == 0);
    CHECK(rs.output_alias(3, 5) == -1);
    const auto ag = make(CollectiveKind::all_gather, 4, 2);
    CHECK(ag.output_alias(3, 1) == 7);
    CHECK(ag.input_alias(3, 0) == -1);
}

TEST_CASE("a collective out of range is refused") {
    const auto refused = [](Collective c) {
        try {
            c.check("here");
            return false;
        } catch (const baton::Error& error) {
            return error.kind() == baton::ErrorKind::input && error.where() == "here";
        }
    };
    CHECK(refused(make(CollectiveKind::broadcast, 0, 1)));
    CHECK(refused(make(CollectiveKind::broadcast, 1 << 21, 1)));
    CHECK(refused(make(CollectiveKind::broadcast, 4, 0)));
    CHECK(refused(make(CollectiveKind::broadcast, 4, (std::int64_t{1} << 31) + 1)));
    CHECK(refused(make(CollectiveKind::broadcast, 4, 1, 4)));
    CHECK(refused(make(CollectiveKind::broadcast, 4, 1, -1)));
    auto c = make(CollectiveKind::all_reduce, 4, 2);
    c.groups = {{0, 1}, {1, 2}};
    CHECK(refused(c));
    c.groups = {{0, 4}};
    CHECK(refused(c));
    c.groups = {{}};
    CHECK(refused(c));
    c.groups.clear();
    c.weights = {1};
    CHECK(refused(c));
    c.weights = {1, 0};
    CHECK(refused(c));
    c.weights = {1, 2};
    CHECK_FALSE(refused(c));
    CHECK(refused(make(CollectiveKind::custom, 2, 1)));
}

TEST_CASE("a partition covers each element once, on 16-byte boundaries, for any count") {
    std::mt19937 random(3);
    for (int trial = 0; trial < 400; ++trial) {
        auto c = make(CollectiveKind::all_reduce, 2, 1 + static_cast<std::int64_t>(random() % 9));
        if (trial % 2)
            for (std::int64_t k = 0; k < c.chunks; ++k)
                c.weights.push_back(1 + static_cast<std::int64_t>(random() % 5));
        const std::int64_t unit = std::int64_t{1} << (random() % 5);
        const std::int64_t count = static_cast<std::int64_t>(random() % (trial % 3 ? 200 : 5));
        const Partition partition(c, count, unit);
        std::int64_t at = 0, largest = 0;
        for (std::int64_t k = 0; k < c.chunks; ++k) {
            const auto range = partition.class_range(k);
            CHECK(range.begin == at);
            CHECK(range.size() >= 0);
            CHECK((range.begin % unit == 0 || range.begin == count));
            at = range.end;
            largest = std::max(largest, range.size());
            std::int64_t tile_at = range.begin;
            for (std::int64_t t = 0; t < 3; ++t) {
                const auto tile = partition.tile_range(k, t, 3);
                CHECK(tile.begin == tile_at);
                CHECK((tile.begin % unit == 0 || tile.begin == range.end));
                tile_at = tile.end;
            }
            CHECK(tile_at == range.end);
        }
        CHECK(at == count);
        CHECK(partition.largest_class() >= largest);
        CHECK(partition.largest_class() < largest + unit);
    }
}

TEST_CASE("classes follow their weights") {
    auto c = make(CollectiveKind::all_reduce, 2, 3);
    c.weights = {1, 2, 5};
    const Partition partition(c, 8 * 4 * 100, 4);
    CHECK(partition.class_range(0) == ElementRange{0, 400});
    CHECK(partition.class_range(1) == ElementRange{400, 1200});
    CHECK(partition.class_range(2) == ElementRange{1200, 3200});
}

TEST_CASE("partitions of huge shards do not overflow") {
    auto c = make(CollectiveKind::all_reduce, 2, std::int64_t{1} << 31);
    const std::int64_t count = INT64_MAX - 3;
    const Partition partition(c, count, 16);
    CHECK(partition.class_range(0).begin == 0);
    CHECK(partition.class_range(c.chunks - 1).end == count);
}
