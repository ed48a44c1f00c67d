#include <baton/base/error.hpp>
#include <baton/ir/numerics.hpp>
#include <baton/runtime/reference.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace baton::runtime {
namespace {

using ir::Buffer;
using ir::CollectiveKind;
using ir::DataType;
using ir::ReduceOp;

/// Elements of an output and the input elements that they combine.
struct Piece {
    std::int64_t begin = 0, size = 0;  // in the output
    std::vector<const char*> sources;  // first byte at each contribution, in rank order
};

/// Calls `visit(piece)` for the whole output of a rank. Standard kinds go shard by shard: the classes of a
/// shard have the same contributions.
template <class Visit>
void each_piece(const ir::Collective& c, const CallArguments& arguments, std::span<const RankBuffers> buffers,
                int rank, const Visit& visit) {
    const std::int64_t width = ir::size_of(arguments.type), count = arguments.count;
    const bool custom = c.kind == CollectiveKind::custom;
    const ir::Partition partition(c, count, ir::elements_per_16_bytes(arguments.type));
    const std::int64_t places = c.places(rank, Buffer::output);
    for (std::int64_t index = 0; index < places; index += custom ? 1 : c.chunks) {
        const ir::OutputPlace place = c.output(rank, index);
        const ir::ElementRange range =
            custom ? partition.class_range(place.chunk_class) : ir::ElementRange{0, count};
        if (range.size() == 0) continue;
        Piece piece{c.shard_of(rank, Buffer::output, index) * count + range.begin, range.size(), {}};
        for (const auto& contribution : place.contributions) {
            const auto* input =
                static_cast<const char*>(buffers[static_cast<std::size_t>(contribution.rank)].input);
            piece.sources.push_back(input + (contribution.shard * count + range.begin) * width);
        }
        visit(piece);
    }
}

std::uint64_t mix(std::uint64_t x) {  // splitmix64
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}
std::uint64_t at(std::uint64_t seed, int rank, std::int64_t i) {
    return mix(mix(seed * 0x100000001b3ULL + static_cast<std::uint64_t>(rank) + 1) ^
               static_cast<std::uint64_t>(i));
}

/// Values repeat after so many elements, a prime: a shard or tile that is out of place still shows.
constexpr std::int64_t kPeriod = 65521;

/// Repeats the first `kPeriod` elements.
void repeat(char* bytes, std::int64_t width, std::int64_t count) {
    for (std::int64_t done = kPeriod; done < count;) {
        const std::int64_t more = std::min(done, count - done);
        std::memcpy(bytes + done * width, bytes, static_cast<std::size_t>(more * width));
        done += more;
    }
}

/// The largest n so that all integers from -n to n are exact.
std::int64_t exact_integers(DataType type) {
    switch (type) {
        case DataType::f8e5m2: return 8;
        case DataType::f8e4m3: return 16;
        case DataType::bf16: return 256;
        case DataType::f16: return 2048;
        case DataType::f32: return std::int64_t{1} << 24;
        default: return std::int64_t{1} << 53;
    }
}

/// An element of one rank whose sums over any ranks, in any order, are exact.
double exact_summand(DataType type, int ranks, int rank, std::uint64_t seed, std::int64_t i) {
    const std::int64_t budget = exact_integers(type);
    const std::uint64_t bits = at(seed, rank, i);
    const std::int64_t each = std::min<std::int64_t>(budget / ranks, 1000);
    if (each >= 1)
        return static_cast<double>(
            static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(2 * each + 1)) - each);
    // Too many ranks for the type: `budget` of them, others for each element, hold 1 or -1.
    const auto place =
        (static_cast<std::uint64_t>(rank) + at(seed, -7, i)) % static_cast<std::uint64_t>(ranks);
    if (place >= static_cast<std::uint64_t>(budget)) return 0;
    return bits & 1 ? 1 : -1;
}

/// A factor of one rank: 2 at three ranks, 1/2 at three others, 3 at one, else 1, with random signs.
double exact_factor(int ranks, int rank, std::uint64_t seed, std::int64_t i) {
    const auto place =
        (static_cast<std::uint64_t>(rank) + at(seed, -7, i)) % static_cast<std::uint64_t>(ranks);
    const double sign = at(seed, rank, i) & 1 ? 1 : -1;
    if (place < 3) return sign * 2;
    if (place < 6) return sign * 0.5;
    return place == 6 ? sign * 3 : sign;
}

void random_element(const CallArguments& arguments, std::uint64_t bits, int rank, std::int64_t i,
                    void* element) {
    const DataType type = arguments.type, value_type = ir::value_type(type);
    if (ir::is_integer(type)) {
        std::memcpy(element, &bits, static_cast<std::size_t>(ir::size_of(type)));
        return;
    }
    double value =
        static_cast<double>(static_cast<std::int64_t>(bits >> 32) - (std::int64_t{1} << 31)) * 0x1p-31;
    if (ir::is_float(value_type)) {
        value = std::ldexp(value, static_cast<int>(bits % 7) - 3);
        if ((bits >> 8) % 16 == 0) {
            constexpr double inf = std::numeric_limits<double>::infinity();
            const double specials[] = {
                std::numeric_limits<double>::quiet_NaN(),
                inf,
                -inf,
                0.0,
                -0.0,
                ir::is_narrow_float(value_type) && value_type != DataType::bf16 ? 0x1p-15 : 0x1p-130};
            value = specials[(bits >> 12) % 6];
        }
    } else {
        value = std::floor(value * 1000);
    }
    ir::from_double(type, value, element, static_cast<std::int32_t>(rank * 1000 + i % 1000));
}

}  // namespace

void reference(const ir::Collective& collective, const CallArguments& arguments,
               std::span<const RankBuffers> buffers) {
    check_buffers(collective, arguments, buffers);
    const bool reducing = ir::reduces(collective.kind);
    if (reducing) ir::check_valid(arguments.op, arguments.type);
    const std::int64_t width = ir::size_of(arguments.type);
    std::vector<const char*>
        previous;  // sources and output of the rank before: replicas need no second computation
    const char* replica = nullptr;
    for (int rank = 0; rank < collective.ranks; ++rank) {
        auto* output = static_cast<char*>(buffers[static_cast<std::size_t>(rank)].output);
        each_piece(collective, arguments, buffers, rank, [&](const Piece& piece) {
            char* to = output + piece.begin * width;
            if (collective.kind == CollectiveKind::all_reduce && replica != nullptr &&
                piece.sources == previous) {
                std::memcpy(to, replica, static_cast<std::size_t>(piece.size * width));
            } else if (!reducing) {
                std::memcpy(to, piece.sources[0], static_cast<std::size_t>(piece.size * width));
            } else {
                std::vector<const void*> sources(piece.sources.begin(), piece.sources.end());
                ir::reduce_buffers(arguments.op, arguments.type, arguments.nan, sources, to, piece.size);
            }
            replica = to;
            previous = piece.sources;
        });
    }
}

void fill_exact(const CallArguments& arguments, int ranks, int rank, std::uint64_t seed, void* input,
                std::int64_t count) {
    const DataType type = arguments.type;
    const std::int64_t width = ir::size_of(type);
    auto* bytes = static_cast<char*>(input);
    for (std::int64_t i = 0; i < std::min(count, kPeriod); ++i) {
        void* element = bytes + i * width;
        const std::uint64_t bits = at(seed, rank, i);
        if (ir::is_pair(type)) {
            // Few values, so that ties occur; indices that do not grow with the rank.
            ir::from_double(type, static_cast<double>(static_cast<int>(bits % 5) - 2), element,
                            static_cast<std::int32_t>((bits >> 8) % 1000));
        } else if (ir::is_float(type) && (arguments.op == ReduceOp::sum || arguments.op == ReduceOp::avg)) {
            ir::from_double(type, exact_summand(type, ranks, rank, seed, i), element);
        } else if (ir::is_float(type) && arguments.op == ReduceOp::prod) {
            ir::from_double(type, exact_factor(ranks, rank, seed, i), element);
        } else if (ir::is_integer(type) && (arguments.op == ReduceOp::land || arguments.op == ReduceOp::lor ||
                                            arguments.op == ReduceOp::lxor)) {
            ir::from_double(type, static_cast<double>(bits % 4 == 0 ? 0 : 1 + (bits >> 8) % 100), element);
        } else {
            random_element(arguments, bits, rank, i, element);
        }
    }
    repeat(bytes, width, count);
}

void fill_random(const CallArguments& arguments, int rank, std::uint64_t seed, void* input,
                 std::int64_t count) {
    const std::int64_t width = ir::size_of(arguments.type);
    auto* bytes = static_cast<char*>(input);
    for (std::int64_t i = 0; i < std::min(count, kPeriod); ++i)
        random_element(arguments, at(seed, rank, i), rank, i, bytes + i * width);
    repeat(bytes, width, count);
}

void fill_bits(int rank, std::uint64_t seed, void* input, std::int64_t bytes) {
    auto* to = static_cast<char*>(input);
    for (std::int64_t i = 0; i < bytes; i += 8) {
        const std::uint64_t bits = at(seed, rank, i);
        std::memcpy(to + i, &bits, static_cast<std::size_t>(std::min<std::int64_t>(8, bytes - i)));
    }
}

std::string element_text(DataType type, const void* element) {
    if (ir::is_pair(type)) {
        std::int32_t index = 0;
        const DataType value = ir::value_type(type);
        std::memcpy(&index, static_cast<const char*>(element) + ir::size_of(value), sizeof index);
        return fmt::format("({}, {})", element_text(value, element), index);
    }
    if (type == DataType::i64 || type == DataType::u64) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, element, sizeof bits);
        return type == DataType::u64 ? fmt::format("{}", bits)
                                     : fmt::format("{}", static_cast<std::int64_t>(bits));
    }
    return fmt::format("{}", ir::to_double(type, element));
}

std::optional<Mismatch> compare(DataType type, const void* actual, const void* expected, std::int64_t count) {
    const std::int64_t width = ir::size_of(type);
    if (count <= 0 || std::memcmp(actual, expected, static_cast<std::size_t>(count * width)) == 0)
        return std::nullopt;
    Mismatch mismatch{-1, 0, {}};
    for (std::int64_t i = 0; i < count; ++i) {
        if (std::memcmp(static_cast<const char*>(actual) + i * width,
                        static_cast<const char*>(expected) + i * width, static_cast<std::size_t>(width)) == 0)
            continue;
        if (mismatch.element < 0) mismatch.element = i;
        ++mismatch.elements;
    }
    const std::int64_t first = mismatch.element * width;
    mismatch.words =
        fmt::format("element {} of {} is {}, expected {}; {} element{} differ{}", mismatch.element, count,
                    element_text(type, static_cast<const char*>(actual) + first),
                    element_text(type, static_cast<const char*>(expected) + first), mismatch.elements,
                    mismatch.elements == 1 ? "" : "s", mismatch.elements == 1 ? "s" : "");
    return mismatch;
}

namespace {

/// What the error of a float type is made of.
struct Rounding {
    double unit, largest, smallest_normal, smallest;  // unit roundoff; finite; subnormal
};
Rounding rounding_of(DataType type) {
    switch (type) {
        case DataType::f16: return {0x1p-11, 65504, 0x1p-14, 0x1p-24};
        case DataType::bf16: return {0x1p-8, 0x1.fep127, 0x1p-126, 0x1p-133};
        case DataType::f8e4m3: return {0x1p-4, 448, 0x1p-6, 0x1p-9};
        case DataType::f8e5m2: return {0x1p-3, 57344, 0x1p-14, 0x1p-16};
        case DataType::f32: return {0x1p-24, std::numeric_limits<float>::max(), 0x1p-126, 0x1p-149};
        default: return {0x1p-53, std::numeric_limits<double>::max(), 0x1p-1022, 0x1p-1074};
    }
}

/// Exact value of one element and how far a result may be from it; `bounded` false where nothing is demanded.
struct Expectation {
    long double value = 0, bound = 0;
    bool bounded = true, is_nan = false;
};

Expectation expectation(ReduceOp op, const Rounding& rounding, const std::vector<const char*>& sources,
                        DataType type, std::int64_t offset) {
    Expectation out;
    const auto n = static_cast<long double>(sources.size());
    long double sum = 0, magnitudes = 0, product = 1, largest = 1, smallest = 1;
    bool finite = true;
    for (const char* source : sources) {
        const long double x = ir::to_double(type, source + offset);
        if (std::isnan(x)) out.is_nan = true;
        finite = finite && std::isfinite(x);
        sum += x;
        magnitudes += std::fabs(x);
        product *= x;
        largest *= std::max(1.0L, std::fabs(x));
        smallest *= std::min(1.0L, std::fabs(x));
    }
    if (out.is_nan) return out;
    const long double growth = std::pow(1.0L + rounding.unit, n) - 1;
    const long double tiny = n * rounding.smallest / 2;
    if (op == ReduceOp::prod) {
        out.value = product;
        out.bound = growth * std::fabs(product) + tiny;
        out.bounded = finite && largest < rounding.largest / 2 && smallest > rounding.smallest_normal * 2;
    } else {
        const long double divisor = op == ReduceOp::avg ? n : 1;
        out.value = sum / divisor;
        // The division and the last store round once more each.
        out.bound = (std::pow(1.0L + rounding.unit, n + 2) - 1) * magnitudes / divisor + 2 * tiny;
        out.bounded = finite && magnitudes < rounding.largest / 2;
    }
    return out;
}

}  // namespace

ErrorReport check_error_bound(const ir::Collective& collective, const CallArguments& arguments,
                              std::span<const RankBuffers> buffers) {
    check_buffers(collective, arguments, buffers);
    ErrorReport report;
    const DataType type = arguments.type;
    const std::int64_t width = ir::size_of(type);
    const bool rounds =
        ir::reduces(collective.kind) && ir::is_float(type) &&
        (arguments.op == ReduceOp::sum || arguments.op == ReduceOp::avg || arguments.op == ReduceOp::prod);
    const Rounding rounding = rounding_of(type);
    std::vector<char> expected;
    const auto fail = [&](int rank, Mismatch found) {
        if (report.mismatch) return;
        found.words = fmt::format("rank {}: {}", rank, found.words);
        report.mismatch = std::move(found);
    };
    for (int rank = 0; rank < collective.ranks; ++rank) {
        const auto* output = static_cast<const char*>(buffers[static_cast<std::size_t>(rank)].output);
        each_piece(collective, arguments, buffers, rank, [&](const Piece& piece) {
            const char* actual = output + piece.begin * width;
            if (!rounds) {
                expected.resize(static_cast<std::size_t>(piece.size * width));
                std::vector<const void*> sources(piece.sources.begin(), piece.sources.end());
                if (ir::reduces(collective.kind))
                    ir::reduce_buffers(arguments.op, type, arguments.nan, sources, expected.data(),
                                       piece.size);
                else
                    std::memcpy(expected.data(), piece.sources[0], expected.size());
                report.checked += piece.size;
                if (auto found = compare(type, actual, expected.data(), piece.size)) {
                    found->element += piece.begin;
                    fail(rank, *found);
                }
                return;
            }
            for (std::int64_t i = 0; i < piece.size; ++i) {
                const Expectation want = expectation(arguments.op, rounding, piece.sources, type, i * width);
                const long double got = ir::to_double(type, actual + i * width);
                if (!want.is_nan && !want.bounded) {
                    ++report.unbounded;
                    continue;
                }
                ++report.checked;
                const long double error = std::fabs(got - want.value);
                const bool good = want.is_nan ? std::isnan(got) : error <= want.bound;
                if (!want.is_nan && want.bound > 0)
                    report.largest = std::max(report.largest, static_cast<double>(error / want.bound));
                if (!good)
                    fail(rank,
                         {piece.begin + i, 1,
                          fmt::format("element {} is {}, expected {} within {}", piece.begin + i,
                                      element_text(type, actual + i * width), static_cast<double>(want.value),
                                      static_cast<double>(want.bound))});
            }
        });
    }
    return report;
}

}  // namespace baton::runtime
