// Writes looped algorithms: the steps of JSON files ("ir/algorithm.hpp") from C++, with operands as
// expression texts.
#pragma once

#include <baton/ir/algorithm.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace baton::synth {

/// How whole blocks stand in the buffers of a pattern. Block b is shard b for kinds with shards (C chunks
/// each); otherwise it is the b-th of `count` equal parts of the buffer (one chunk each, or chunks b*C/count
/// and following where groups of several sizes share one chunk count).
class Blocks {
public:
    enum class Form { shards, chunks, parts };
    Blocks(Form form, std::string count) : form_(form), count_(std::move(count)) {}
    /// Index of the first place of block `b`.
    std::string at(const std::string& b) const;
    /// Chunks in the `count` blocks from block `b` on; 0 for count 0.
    std::string run(const std::string& b, const std::string& count) const;
    /// Number of blocks, an expression over N.
    const std::string& count() const { return count_; }

private:
    Form form_;
    std::string count_;
};

/// A place whose rank and index are expression texts.
struct At {
    std::string rank;
    ir::Buffer buffer;
    std::string index;
};

/// Appends steps, loops and blocks. A step whose operands mention `r` stands for all positions; one with 0
/// chunks is left out when it is expanded. Steps whose ends are the same rank are copies and reductions.
class TemplateWriter {
public:
    TemplateWriter() : bodies_(1) {}

    void copy(const At& source, const At& destination, const std::string& chunks = "1");
    void reduce(const At& source, const At& destination, const std::string& chunks = "1");
    void send(const At& source, const At& destination, const std::string& chunks = "1");
    void send_reduce(const At& source, const At& destination, const std::string& chunks = "1");
    /// The `count` blocks from `first` on, around the end (first in 0..blocks-1, count at most blocks): up to
    /// two steps with the same block numbers at both ends.
    void wrapped(ir::StepOp op, const std::string& source, ir::Buffer from, const std::string& destination,
                 ir::Buffer to, const Blocks& blocks, const std::string& first, const std::string& count);

    void let(const std::string& name, const std::string& value);
    void loop(const std::string& variable, const std::string& from, const std::string& to,
              const std::function<void()>& inside);
    /// Counts down by one while the variable is above `to`.
    void loop_down(const std::string& variable, const std::string& from, const std::string& to,
                   const std::function<void()>& inside);
    /// Doubles the variable while it is below `to`.
    void loop_doubling(const std::string& variable, const std::string& from, const std::string& to,
                       const std::function<void()>& inside);
    void when(const std::string& condition, const std::function<void()>& inside);
    void when(const std::string& condition, const std::function<void()>& inside,
              const std::function<void()>& otherwise);
    void par(const std::function<void()>& inside);

    /// What was written; the writer is empty afterwards.
    ir::Body take();

private:
    void step(ir::StepOp op, const At& source, const At& destination, const std::string& chunks);
    std::shared_ptr<const ir::Body> nested(const std::function<void()>& inside);
    void add(decltype(ir::Item::value) value);
    std::vector<ir::Body> bodies_;  // the innermost open body last
};

}  // namespace baton::synth
