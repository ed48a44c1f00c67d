// Writes what tests/support/module_driver.cc runs: emitted modules with calls, inputs and expected outputs.
#pragma once

#include <baton/codegen/emit.hpp>
#include <baton/codegen/prelude.hpp>
#include <baton/ir/numerics.hpp>

#include <algorithm>
#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace baton::test {

using Buffer = std::vector<unsigned char>;

/// Values whose reduction is exact in every order (integers and bits wrap; floats stay small), so results are
/// unique.
inline void random_element(std::mt19937& random, ir::DataType type, ir::ReduceOp op, bool reduces,
                           unsigned char* element) {
    const auto size = static_cast<std::size_t>(ir::size_of(type));
    const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    if (!reduces || ir::is_integer(type)) {
        for (std::size_t i = 0; i < size; ++i) element[i] = static_cast<unsigned char>(random());
        if (reduces && draw(0, 3) == 0) std::memset(element, 0, size);  // false, for the logical operators
        return;
    }
    if (ir::is_pair(type)) return ir::from_double(type, draw(-3, 3), element, draw(0, 50));
    const bool tiny = type == ir::DataType::f8e4m3 || type == ir::DataType::f8e5m2;
    double value = tiny ? draw(0, 1) : draw(-8, 8);
    if (op == ir::ReduceOp::prod) value = draw(0, 4) == 0 ? -1 : 1;
    ir::from_double(type, value, element);
}

struct CallShape {
    std::int64_t count = 64, tiles = 1;
    int segments = 1;
    bool in_place = false;
    int shift_in = 0, shift_out = 0;  ///< bytes that buffers begin after a multiple of 16
};

/// Collects cases; `text` is the case file, `source` one translation unit of all modules.
class ModuleCases {
public:
    /// Adds a module with calls of one of its entries. `slot_bytes`: of every staged connection; tiles are
    /// raised to fit.
    void add(const std::string& name, const codegen::Module& module, const codegen::ManifestEntry& entry,
             const std::vector<CallShape>& calls, std::int64_t slot_bytes, std::uint32_t seed) {
        const codegen::Manifest& m = module.manifest;
        const std::string own = module.source.substr(codegen::prelude_source().size());
        if (source_.find(own) == std::string::npos) source_ += own;
        std::string word = name;
        std::replace(word.begin(), word.end(), ' ', '_');
        text_ << word << ' ' << entry.name << ' ' << m.ranks.size() << ' ' << m.connections.size() << '\n';
        for (const auto& c : m.connections) {
            text_ << c.src << ' ' << c.dst << ' ' << c.slots << ' '
                  << (c.mode == ir::Mode::staged ? slot_bytes : 0) << '\n';
        }
        text_ << m.tokens.size() << '\n';
        for (const auto& rank : m.ranks) {
            text_ << rank.threadblocks << ' ' << rank.scratch_places << ' ' << rank.connections.size();
            for (const auto& [number, sends] : rank.connections) text_ << ' ' << number << ' ' << sends;
            text_ << ' ' << rank.tokens.size();
            for (const int token : rank.tokens) text_ << ' ' << token;
            text_ << ' ' << rank.peers.size();
            for (const int peer : rank.peers) text_ << ' ' << peer;
            text_ << '\n';
        }
        text_ << calls.size() << '\n';
        std::mt19937 random(seed);
        for (const CallShape& call : calls) add_call(m, entry, call, slot_bytes, random);
        ++cases_;
    }
    std::string text() const { return std::to_string(cases_) + "\n" + text_.str(); }
    std::string source() const { return codegen::prelude_source() + source_; }
    int size() const { return cases_; }

private:
    static std::int64_t shards(const ir::Collective& collective, int rank, ir::Buffer buffer) {
        std::int64_t most = 0;
        for (std::int64_t i = 0; i < collective.places(rank, buffer); ++i)
            most = std::max(most, collective.shard_of(rank, buffer, i) + 1);
        return most;
    }

    void add_call(const codegen::Manifest& m, const codegen::ManifestEntry& entry, const CallShape& call,
                  std::int64_t slot_bytes, std::mt19937& random) {
        const ir::Collective& collective = m.collective;
        const std::int64_t size = entry.element_size(),
                           tiles = m.fitting_tiles(entry, call.count, slot_bytes, call.tiles);
        text_ << call.count << ' ' << tiles << ' ' << m.scratch_stride(entry, call.count) << ' '
              << collective.group_size() << ' ' << call.segments << ' ' << call.shift_in << ' '
              << call.shift_out << '\n';
        std::vector<Buffer> inputs;
        for (int r = 0; r < collective.ranks; ++r) {
            Buffer& input = inputs.emplace_back(shards(collective, r, ir::Buffer::input) * call.count * size);
            for (std::size_t at = 0; at < input.size(); at += size) {
                random_element(random, entry.type, entry.op.value_or(ir::ReduceOp::sum), entry.op.has_value(),
                               input.data() + at);
            }
        }
        for (int r = 0; r < collective.ranks; ++r) {
            const bool has_input = collective.places(r, ir::Buffer::input) > 0,
                       has_output = collective.places(r, ir::Buffer::output) > 0;
            const Buffer output = expected(m, entry, call.count, inputs, r);
            int place = 0;
            std::int64_t offset = 0;
            if (call.in_place && has_input && has_output)
                alias(collective, r, call.count * size, place, offset);
            text_ << has_input << ' ' << has_output << ' ' << place << ' ' << offset << ' ';
            hex(inputs[r]);
            hex(output);
            text_ << '\n';
        }
    }

    /// Where the smaller of the two buffers lies within the larger.
    static void alias(const ir::Collective& collective, int rank, std::int64_t shard_bytes, int& place,
                      std::int64_t& offset) {
        const std::int64_t of_first = collective.output_alias(rank, 0),
                           of_output = collective.input_alias(rank, 0);
        if (of_first >= 0) {
            place = 1;
            offset = collective.shard_of(rank, ir::Buffer::output, of_first) * shard_bytes;
        } else if (of_output >= 0) {
            place = 2;
            offset = collective.shard_of(rank, ir::Buffer::input, of_output) * shard_bytes;
        }
        if (of_first == 0 && of_output == 0) {
            place = collective.places(rank, ir::Buffer::input) > collective.places(rank, ir::Buffer::output)
                        ? 2
                        : 1;
        }
    }

    static Buffer expected(const codegen::Manifest& m, const codegen::ManifestEntry& entry,
                           std::int64_t count, const std::vector<Buffer>& inputs, int rank) {
        const ir::Collective& collective = m.collective;
        const std::int64_t size = entry.element_size();
        const ir::Partition partition(collective, count, ir::elements_per_16_bytes(entry.type));
        Buffer output(shards(collective, rank, ir::Buffer::output) * count * size,
                      0xee);  // what no place covers stays
        for (std::int64_t i = 0; i < collective.places(rank, ir::Buffer::output); ++i) {
            const ir::OutputPlace place = collective.output(rank, i);
            const ir::ElementRange range = partition.class_range(place.chunk_class);
            unsigned char* to =
                output.data() +
                (collective.shard_of(rank, ir::Buffer::output, i) * count + range.begin) * size;
            std::vector<const void*> sources;
            for (const ir::Contribution& from : place.contributions)
                sources.push_back(inputs[from.rank].data() + (from.shard * count + range.begin) * size);
            if (range.size() == 0) continue;
            if (entry.op)
                ir::reduce_buffers(*entry.op, entry.type, entry.nan, sources, to, range.size());
            else
                std::memcpy(to, sources.at(0), range.size() * size);
        }
        return output;
    }

    void hex(const Buffer& bytes) {
        static const char* digits = "0123456789abcdef";
        std::string text = bytes.empty() ? "-" : "";
        for (const unsigned char byte : bytes) text += digits[byte >> 4], text += digits[byte & 15];
        text_ << text << ' ';
    }

    std::ostringstream text_;
    std::string source_;
    int cases_ = 0;
};

}  // namespace baton::test
