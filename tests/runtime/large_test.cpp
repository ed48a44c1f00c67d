// Offsets and counts beyond 2^31 and 2^32: executed on memory whose pages repeat, so that gigabytes take
// megabytes.
#include "support/collective_run.hpp"
#include "support/full.hpp"
#include "support/kind_algorithms.hpp"

#include <baton/codegen/lower.hpp>

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace baton;
using namespace baton::runtime;

namespace {

constexpr std::int64_t kWindow = std::int64_t{4} << 20;

/// `bytes` of address space; only what is touched takes memory. With `own` offsets every window of 4 MiB
/// shows the same memory, but for those that hold one of them.
class SparseBuffer {
public:
    explicit SparseBuffer(std::int64_t bytes) : SparseBuffer(bytes, {}) {}
    SparseBuffer(std::int64_t bytes, const std::vector<std::int64_t>& own)
        : bytes_((bytes + kWindow - 1) / kWindow * kWindow) {
        void* base = mmap(nullptr, static_cast<std::size_t>(bytes_), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        REQUIRE(base != MAP_FAILED);
        data_ = static_cast<char*>(base);
        if (own.empty()) return;
        const int file = memfd_create("window", 0);
        REQUIRE(file >= 0);
        REQUIRE(ftruncate(file, kWindow) == 0);
        for (std::int64_t at = 0; at < bytes_; at += kWindow) {
            const bool mine = std::any_of(own.begin(), own.end(), [&](std::int64_t offset) {
                return offset / kWindow == at / kWindow;
            });
            if (mine) continue;
            void* shared = mmap(data_ + at, kWindow, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
            REQUIRE(shared != MAP_FAILED);
        }
        close(file);
    }
    ~SparseBuffer() { munmap(data_, static_cast<std::size_t>(bytes_)); }
    SparseBuffer(const SparseBuffer&) = delete;
    char* data() const { return data_; }

private:
    char* data_ = nullptr;
    std::int64_t bytes_;
};

}  // namespace

TEST_CASE("trap: shards beyond 2^31 elements and outputs beyond 2^32 bytes arrive where they belong" *
          doctest::skip(!test::full())) {
    // An all-gather of i8 between two ranks; the second shard begins beyond 2^31 and ends beyond 2^32.
    const std::int64_t count = (std::int64_t{1} << 31) + 1001;
    codegen::LowerOptions options;
    options.mode = codegen::ModePreference::get;  // no slots to hold gigabytes
    Interpreter interpreter(codegen::lower(test::ring_all_gather(2), options));
    const std::vector<std::int64_t> probes{0, 1234, count - 1};
    std::vector<std::int64_t> out_probes;
    for (const std::int64_t probe : probes) out_probes.insert(out_probes.end(), {probe, count + probe});
    const SparseBuffer in0(count, probes), in1(count, probes), out0(2 * count, out_probes),
        out1(2 * count, out_probes);
    for (std::size_t p = 0; p < probes.size(); ++p) {
        in0.data()[probes[p]] = static_cast<char>(10 + p);
        in1.data()[probes[p]] = static_cast<char>(20 + p);
    }
    const InterpretReport report =
        interpreter.run({count, ir::DataType::i8},
                        std::vector<RankBuffers>{{in0.data(), out0.data()}, {in1.data(), out1.data()}}, {3});
    CHECK(report.bytes_moved >= 4 * count);
    for (std::size_t p = 0; p < probes.size(); ++p)
        for (const SparseBuffer* out : {&out0, &out1}) {
            CHECK(out->data()[probes[p]] == static_cast<char>(10 + p));
            CHECK(out->data()[count + probes[p]] == static_cast<char>(20 + p));
        }
}

TEST_CASE("trap: places beyond 2^32 bytes are read and written where they belong") {
    // A custom collective of shards of a gibibyte, of which each place is the first thousandth of a
    // thousandth: five places lie over five gibibytes of address space, of which kilobytes are touched.
    const std::int64_t count = (std::int64_t{1} << 30) + 77;
    constexpr int kPlaces = 5;
    ir::Collective c = test::collective(ir::CollectiveKind::custom, 2, 2);
    c.weights = {1, 1'000'000};
    auto places = std::make_shared<ir::CustomPlaces>();
    places->inputs.resize(2);
    places->outputs.resize(2);
    for (int i = 0; i < kPlaces; ++i) {
        places->inputs[0].push_back({i, 0});
        places->outputs[1].push_back({0, {{0, kPlaces - 1 - i}}});  // in the opposite order
    }
    c.custom = places;
    ir::AlgorithmBuilder b("far places", c);
    for (int i = 0; i < kPlaces; ++i)
        b.send({0, ir::Buffer::input, i}, {1, ir::Buffer::output, kPlaces - 1 - i});
    const ir::Algorithm algorithm = b.build();
    const std::int64_t size = ir::Partition(c, count, 16).class_range(0).size();
    REQUIRE(size > 1000);
    for (const auto mode :
         {codegen::ModePreference::staged, codegen::ModePreference::put, codegen::ModePreference::get}) {
        codegen::LowerOptions options;
        options.mode = mode;
        Interpreter interpreter(codegen::lower(algorithm, options));
        REQUIRE(buffer_bytes(c, 1, ir::Buffer::output, count, ir::DataType::i8) > (std::int64_t{1} << 32));
        const SparseBuffer in(kPlaces * count), out(kPlaces * count), expected(kPlaces * count);
        for (int i = 0; i < kPlaces; ++i) fill_bits(i, 5, in.data() + i * count, size);
        const CallArguments arguments{count, ir::DataType::i8};
        interpreter.run(arguments, std::vector<RankBuffers>{{in.data(), nullptr}, {nullptr, out.data()}},
                        {3});
        reference(c, arguments, std::vector<RankBuffers>{{in.data(), nullptr}, {nullptr, expected.data()}});
        for (int i = 0; i < kPlaces; ++i) {
            CHECK(!compare(ir::DataType::i8, out.data() + i * count, expected.data() + i * count, size));
            CHECK(!compare(ir::DataType::i8, out.data() + i * count, in.data() + (kPlaces - 1 - i) * count,
                           size));
        }
    }
}

TEST_CASE("trap: partitions and tiles of counts beyond 2^32 are whole and in order") {
    ir::Collective c = test::collective(ir::CollectiveKind::all_reduce, 8, 7);
    for (const bool weighted : {false, true}) {
        if (weighted) c.weights = {1, 5, 2, 1, 9, 1, 3};
        for (const std::int64_t count : {(std::int64_t{1} << 31) + 1, (std::int64_t{1} << 32) - 1,
                                         std::int64_t{12935233536}, (std::int64_t{1} << 60) + 7})
            for (const std::int64_t unit : {1, 4, 16}) {
                const ir::Partition partition(c, count, unit);
                std::int64_t at = 0;
                for (std::int64_t k = 0; k < c.chunks; ++k) {
                    CHECK(partition.class_range(k).begin == at);
                    CHECK(partition.class_range(k).size() <= partition.largest_class());
                    for (std::int64_t t = 0; t < 5; ++t) {
                        const auto range = partition.tile_range(k, t, 5);
                        CHECK(range.begin == at);
                        CHECK(range.end >= range.begin);
                        at = range.end;
                    }
                    CHECK(partition.class_range(k).end == at);
                }
                CHECK(at == count);
            }
    }
}

TEST_CASE("trap: sizes that no machine holds are refused before anything is touched") {
    Interpreter interpreter(codegen::lower(test::one_shot_all_reduce(4)));
    std::vector<RankBuffers> buffers;
    static char memory[8];
    for (int r = 0; r < 4; ++r) buffers.push_back({memory, memory});
    CHECK_THROWS_WITH(interpreter.run({std::int64_t{1} << 62}, buffers), doctest::Contains("too large"));
    // Enough buffers, but scratch above the limit.
    codegen::LowerOptions options;
    options.mode = codegen::ModePreference::get;
    Interpreter scratch(codegen::lower(test::chain_gather(3, 0), options));
    InterpretOptions limited;
    limited.memory_limit = 1 << 20;
    const test::Buffers large(scratch.program().collective, {400'000}, false);
    CHECK_THROWS_WITH(scratch.run({400'000}, large.pointers(), limited),
                      doctest::Contains("bytes of scratch"));
}

TEST_CASE("trap: 10556587 floats on 8 ranks" * doctest::skip(!test::full())) {
    for (const auto& algorithm : test::algorithms_for(ir::CollectiveKind::all_reduce, 8, 0)) {
        Interpreter interpreter(codegen::lower(algorithm));
        CHECK(test::faults_of(interpreter, {10556587}, true, {16}) == "");
    }
}

TEST_CASE("trap: a count that the ranks do not divide, on 8 ranks") {
    for (const auto& algorithm : test::algorithms_for(ir::CollectiveKind::all_reduce, 8, 0)) {
        Interpreter interpreter(codegen::lower(algorithm));
        for (const bool in_place : {false, true})
            CHECK(test::faults_of(interpreter, {10567}, in_place, {16}) == "");
    }
}
