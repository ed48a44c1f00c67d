// Algorithm: the whole machine at once. An ordered list of steps, each moving or reducing a run of chunks
// between two places. What people write and synthesizers emit: what moves where, not which threadblock does
// it.
#pragma once

#include <baton/ir/collective.hpp>
#include <baton/ir/expression.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace baton::ir {

/// copy and reduce stay on one rank; send copies to another rank; send_reduce combines into the destination
/// (destination := destination op source). multicast and switch_reduce name a switch group and one place on
/// all of its members.
enum class StepOp : std::uint8_t { copy, reduce, send, send_reduce, multicast, switch_reduce };
std::string_view to_string(StepOp op);

/// Wire protocols of a connection.
enum class Protocol : std::uint8_t { automatic, simple, ll, ll128 };
std::string_view to_string(Protocol protocol);

/// One concrete step: 32 bytes. `src_*` to `dst_*` over `chunks` consecutive places. multicast: from
/// src_rank's place to (dst_buffer, dst_index) of all members of switch group dst_rank. switch_reduce:
/// src_rank receives; its (dst_buffer, dst_index) := the reduction of (src_buffer, src_index) over all
/// members of switch group dst_rank.
struct Step {
    StepOp op = StepOp::send;
    Buffer src_buffer = Buffer::input;
    Buffer dst_buffer = Buffer::output;
    Protocol protocol = Protocol::automatic;  ///< a hint
    std::int32_t src_rank = 0, dst_rank = 0;  ///< multicast/switch_reduce: dst_rank is the switch group
    std::int32_t src_index = 0, dst_index = 0;
    std::int32_t chunks = 1;
    std::int16_t channel = -1;  ///< a hint; -1 = lowering chooses
    std::uint8_t par = 0;       ///< 1 when the step belongs to the same par block as the step before it
    std::uint8_t in_par = 0;    ///< 1 for every step of a par block
    std::int32_t via = -1;      ///< index into Algorithm::vias; -1 = the default route
    bool reducing() const {
        return op == StepOp::reduce || op == StepOp::send_reduce || op == StepOp::switch_reduce;
    }
    bool crosses() const { return op != StepOp::copy && op != StepOp::reduce; }
    bool operator==(const Step&) const = default;
};
static_assert(sizeof(Step) == 32);

struct Item;
using Body = std::vector<Item>;

/// A step whose operands are expressions. When any of them contains `r`, it stands for all positions of the
/// group in order.
struct StepTemplate {
    StepOp op = StepOp::send;
    Buffer src_buffer = Buffer::input, dst_buffer = Buffer::output;
    Protocol protocol = Protocol::automatic;
    Expression src_rank, src_index, dst_rank, dst_index, chunks, channel;  ///< channel empty = -1
    std::int32_t via = -1;
    std::shared_ptr<const Expression> condition;  ///< from enclosing ifs that use `r`; null = always
};
/// {"for": [var, from, to], "do": body}: half-open; `multiply` >= 2 multiplies instead of adding `add`.
struct Loop {
    std::string variable;
    Expression from, to;
    std::int64_t add = 1, multiply = 0;
    std::shared_ptr<const Body> body;
};
/// Names a value for the items after it in the same body.
struct Let {
    std::string name;
    Expression value;
};
struct Branch {
    Expression condition;
    std::shared_ptr<const Body> then_body, else_body;  ///< else may be null
};
/// Reads all its sources before it writes anything.
struct Parallel {
    std::shared_ptr<const Body> body;
};
/// A run of concrete steps over communicator ranks.
struct ExplicitSteps {
    std::shared_ptr<const std::vector<Step>> steps;
};
struct Item {
    std::variant<StepTemplate, Loop, Let, Branch, Parallel, ExplicitSteps> value;
    int line = 0;  ///< position in the file's array of steps at its level, for messages
};

class StepCursor;

/// A schedule as steps. Dependencies are what reads and writes of the same place imply, in program order.
struct Algorithm {
    std::string name;
    Collective collective;
    Body body;
    std::map<std::string, std::int64_t> params;  ///< named integers, usable in expressions
    std::vector<Expression> requirements;        ///< `requires`: must hold for N, C, root and params
    std::vector<std::string>
        requirement_words;          ///< per requirement: "N to be a power of two"; "" or absent = its text
    Expression chunks_expression;   ///< collective.chunks as written, when it depends on N or params
    bool over_positions = true;     ///< templates name positions of each group; false: communicator ranks
    std::vector<std::string> vias;  ///< full routes that steps pin
    std::vector<std::vector<int>> switch_groups;  ///< members of each declared switch group
    std::string topology_name, topology_hash;     ///< the machine `vias` belong to; empty = any

    /// All concrete steps in program order, expanded lazily.
    StepCursor steps() const;
    /// The concrete steps in which `rank` is source or destination, in program order. O(1) per step for peers
    /// (+-r+b) mod N and r xor b, otherwise one table per iteration.
    StepCursor steps_of(int rank) const;
    /// Number of concrete steps (walks the loops; cached by none).
    std::int64_t step_count() const;
    /// Scratch places used at each rank: one more than the largest index named. Walks all steps.
    std::vector<std::int64_t> scratch_places() const;
    /// Throws an input error in words when a requirement does not hold: "this algorithm needs N to be a power
    /// of two; got N = 6".
    void check_requirements() const;
};

/// Walks concrete steps; valid while the algorithm lives and is not changed. Every step it gives has ranks
/// within the communicator, one chunk or more and indices below 2^31. Throws an input error that names the
/// step when an expression overflows, a bound uses `r`, or an operand is out of the 32-bit range.
class StepCursor {
public:
    ~StepCursor();
    StepCursor(StepCursor&&) noexcept;
    /// The next step; false at the end.
    bool next(Step& step);
    /// Program position of the step that `next` returned last (0 for the first step of the algorithm).
    std::int64_t position() const;

private:
    friend struct Algorithm;
    struct State;
    explicit StepCursor(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

/// All concrete steps as a list; throws an input error above `limit` steps.
std::vector<Step> expand(const Algorithm& algorithm, std::int64_t limit = 50'000'000);

/// "send [0, output, 3] -> [1, output, 3] x2": a step in words.
std::string describe(const Step& step);

/// A place for the builder.
struct Place {
    int rank = 0;
    Buffer buffer = Buffer::output;
    std::int64_t index = 0;
};

/// Writes explicit algorithms step by step. Operands are communicator ranks.
class AlgorithmBuilder {
public:
    AlgorithmBuilder(std::string name, Collective collective);

    AlgorithmBuilder& copy(Place source, Place destination, std::int64_t chunks = 1);
    AlgorithmBuilder& reduce(Place source, Place destination, std::int64_t chunks = 1);
    /// Same rank at both ends degrades to copy / reduce.
    AlgorithmBuilder& send(Place source, Place destination, std::int64_t chunks = 1);
    AlgorithmBuilder& send_reduce(Place source, Place destination, std::int64_t chunks = 1);
    /// Steps until the matching `end_par` read before any of them writes.
    AlgorithmBuilder& begin_par();
    AlgorithmBuilder& end_par();
    /// Channel and protocol hints and route for the steps that follow (-1, automatic, "" to reset).
    AlgorithmBuilder& channel(int channel);
    AlgorithmBuilder& protocol(Protocol protocol);
    AlgorithmBuilder& via(const std::string& route);

    /// The algorithm; the builder is empty afterwards. Checks the collective and that par blocks are closed.
    Algorithm build();

private:
    AlgorithmBuilder& add(StepOp op, Place source, Place destination, std::int64_t chunks);
    Algorithm algorithm_;
    std::vector<Step> steps_;
    Protocol protocol_ = Protocol::automatic;
    int channel_ = -1, via_ = -1;
    std::map<std::string, int> via_number_;
    bool par_open_ = false, par_first_ = false;
};

}  // namespace baton::ir
