// Relations between collectives, held by schedules: a schedule made of others does what the whole should do.
#include <baton/synth/embed.hpp>
#include <baton/synth/fixed_patterns.hpp>
#include <baton/synth/patterns/family.hpp>

#include <baton/base/error.hpp>
#include <baton/ir/verify.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

using namespace baton;
using namespace baton::synth;
using enum ir::Buffer;
using Kind = ir::CollectiveKind;

namespace {

constexpr std::int64_t kEndless = std::int64_t{1} << 31;

ir::Collective collective(Kind kind, int ranks, std::int64_t chunks, int root = 0) {
    ir::Collective c;
    c.kind = kind;
    c.ranks = ranks;
    c.chunks = chunks;
    c.root = root;
    return c;
}

/// Collects phases over all ranks; scratch of each phase stands behind that of the one before.
class Composition {
public:
    explicit Composition(ir::Collective whole, std::int64_t scratch = 0)
        : whole_(std::move(whole)), scratch_(scratch), ranks_(static_cast<std::size_t>(whole_.ranks)) {
        std::iota(ranks_.begin(), ranks_.end(), 0);
    }
    /// A phase whose input and output stand at an offset of these buffers.
    void add(const std::string& pattern, Kind kind, std::int64_t chunks, int root, ir::Buffer in,
             ir::Buffer out) {
        const auto part = patterns::with_chunks(pattern, collective(kind, whole_.ranks, chunks, root));
        embed(
            part, ranks_,
            [&](int, ir::Buffer buffer, std::int64_t index) -> Placed {
                if (buffer == scratch) return {scratch, scratch_ + index, kEndless};
                if (buffer == input) return {in, index, kEndless};
                return {out, index, kEndless};
            },
            steps_);
        const auto places = part.scratch_places();
        scratch_ += *std::max_element(places.begin(), places.end());
    }
    void prove(const std::string& words) {
        CAPTURE(words);
        CAPTURE(whole_.ranks);
        try {
            CHECK(ir::verify(explicit_algorithm(words, whole_, std::move(steps_))).assurance ==
                  ir::Assurance::proved);
        } catch (const Error& error) {
            FAIL_CHECK(std::string(error.what()));
        }
    }

private:
    ir::Collective whole_;
    std::int64_t scratch_;
    std::vector<int> ranks_;
    std::vector<ir::Step> steps_;
};

std::vector<std::string> patterns_for(Kind kind) {
    std::vector<std::string> names;
    for (const PatternInfo& pattern : fixed_patterns())
        if (serves(pattern.name, kind) && pattern.name != "hierarchical" && pattern.name != "multi_ring")
            names.push_back(pattern.name);
    return names;
}

const std::vector<int> kRanks = {1, 2, 3, 5, 8};

/// Chunks with which all these patterns work.
std::int64_t chunks_for(int ranks) { return 8 * ranks; }

}  // namespace

TEST_CASE("all_reduce is reduce, then broadcast") {
    for (const int n : kRanks)
        for (const auto& first : patterns_for(Kind::reduce))
            for (const auto& second : patterns_for(Kind::broadcast)) {
                const int root = n / 2;
                Composition both(collective(Kind::all_reduce, n, chunks_for(n)));
                both.add(first, Kind::reduce, chunks_for(n), root, input, output);
                both.add(second, Kind::broadcast, chunks_for(n), root, output, output);
                both.prove(first + " reduce, " + second + " broadcast");
            }
}

TEST_CASE("all_reduce is reduce_scatter, then all_gather") {
    for (const int n : kRanks)
        for (const auto& first : patterns_for(Kind::reduce_scatter))
            for (const auto& second : patterns_for(Kind::all_gather)) {
                // The result of the first stands in scratch, for it is no shard of the output yet.
                Composition both(collective(Kind::all_reduce, n, 2 * n), 2);
                both.add(first, Kind::reduce_scatter, 2, 0, input, scratch);
                both.add(second, Kind::all_gather, 2, 0, scratch, output);
                both.prove(first + " reduce_scatter, " + second + " all_gather");
            }
}

TEST_CASE("all_gather is gather, then broadcast") {
    for (const int n : kRanks)
        for (const auto& first : patterns_for(Kind::gather))
            for (const auto& second : patterns_for(Kind::broadcast)) {
                const int root = n - 1;
                Composition both(collective(Kind::all_gather, n, 8));
                both.add(first, Kind::gather, 8, root, input, output);
                both.add(second, Kind::broadcast, 8 * n, root, output, output);
                both.prove(first + " gather, " + second + " broadcast");
            }
}

TEST_CASE("reduce_scatter is reduce, then scatter") {
    for (const int n : kRanks)
        for (const auto& first : patterns_for(Kind::reduce))
            for (const auto& second : patterns_for(Kind::scatter)) {
                const int root = n / 2;
                Composition both(collective(Kind::reduce_scatter, n, 8), 8 * n);
                both.add(first, Kind::reduce, 8 * n, root, input, scratch);
                both.add(second, Kind::scatter, 8, root, scratch, output);
                both.prove(first + " reduce, " + second + " scatter");
            }
}

TEST_CASE("all_gather reversed, with sums for copies, is reduce_scatter; scatter reversed is gather") {
    for (const int n : kRanks)
        for (const auto& name : patterns_for(Kind::all_gather)) {
            CAPTURE(name);
            CAPTURE(n);
            const auto gathered = ir::expand(patterns::with_chunks(name, collective(Kind::all_gather, n, 1)));
            std::vector<ir::Step> steps;
            const auto step = [&](ir::StepOp op, int from, ir::Buffer in, std::int64_t i, int to,
                                  ir::Buffer out, std::int64_t o, int count) {
                ir::Step s;
                s.op = op;
                s.src_rank = from;
                s.dst_rank = to;
                s.src_buffer = in;
                s.dst_buffer = out;
                s.src_index = static_cast<std::int32_t>(i);
                s.dst_index = static_cast<std::int32_t>(o);
                s.chunks = count;
                steps.push_back(s);
            };
            for (int r = 0; r < n; ++r) step(ir::StepOp::copy, r, input, 0, r, scratch, 0, n);
            for (auto it = gathered.rbegin(); it != gathered.rend(); ++it)
                if (it->crosses()) {
                    // A shard sent from the input is the sender's own.
                    const std::int64_t at = it->src_buffer == input ? it->src_rank : it->src_index;
                    step(ir::StepOp::send_reduce, it->dst_rank, scratch, it->dst_index, it->src_rank, scratch,
                         at, it->chunks);
                }
            for (int r = 0; r < n; ++r) step(ir::StepOp::copy, r, scratch, r, r, output, 0, 1);
            try {
                CHECK(
                    ir::verify(explicit_algorithm("reversed", collective(Kind::reduce_scatter, n, 1), steps))
                        .assurance == ir::Assurance::proved);
            } catch (const Error& error) {
                FAIL_CHECK(std::string(error.what()));
            }
        }
    for (const int n : kRanks)
        for (const auto& name : patterns_for(Kind::scatter)) {
            CAPTURE(name);
            CAPTURE(n);
            auto steps = ir::expand(patterns::with_chunks(name, collective(Kind::scatter, n, 2, n / 3)));
            std::reverse(steps.begin(), steps.end());
            for (auto& s : steps) {
                std::swap(s.src_rank, s.dst_rank);
                std::swap(s.src_index, s.dst_index);
                std::swap(s.src_buffer, s.dst_buffer);
                for (auto* buffer : {&s.src_buffer, &s.dst_buffer})
                    if (*buffer != scratch) *buffer = *buffer == input ? output : input;
            }
            try {
                CHECK(ir::verify(explicit_algorithm("reversed", collective(Kind::gather, n, 2, n / 3), steps))
                          .assurance == ir::Assurance::proved);
            } catch (const Error& error) {
                FAIL_CHECK(std::string(error.what()));
            }
        }
}

TEST_CASE("scatter after gather, and all_to_all after all_to_all, give back what was there") {
    for (const int n : kRanks) {
        const auto identity = [&](std::int64_t places) {
            ir::Collective c = collective(Kind::custom, n, 1);
            ir::CustomPlaces all;
            for (int r = 0; r < n; ++r) {
                all.inputs.emplace_back();
                all.outputs.emplace_back();
                for (std::int64_t i = 0; i < places; ++i) {
                    all.inputs.back().push_back({i, 0});
                    all.outputs.back().push_back({0, {{r, i}}});
                }
            }
            c.custom = std::make_shared<const ir::CustomPlaces>(all);
            return c;
        };
        for (const auto& first : patterns_for(Kind::gather))
            for (const auto& second : patterns_for(Kind::scatter)) {
                Composition both(identity(1), n);
                both.add(first, Kind::gather, 1, n / 2, input, scratch);
                both.add(second, Kind::scatter, 1, n / 2, scratch, output);
                both.prove(first + " gather, " + second + " scatter");
            }
        for (const auto& first : patterns_for(Kind::all_to_all))
            for (const auto& second : patterns_for(Kind::all_to_all)) {
                Composition both(identity(n), n);
                both.add(first, Kind::all_to_all, 1, 0, input, scratch);
                both.add(second, Kind::all_to_all, 1, 0, scratch, output);
                both.prove(first + " all_to_all, " + second + " all_to_all");
            }
    }
}
