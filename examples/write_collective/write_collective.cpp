// Writes a collective by hand, has it verified, lowers it, and runs it on buffers of this program:
//
//     write_collective 8                  8 ranks
//     write_collective 8 hypercube.json   and writes the algorithm, for baton verify, sim, codegen and run
//
// The algorithm is an all-reduce by recursive doubling. In step k each rank exchanges all it has with the
// rank whose number differs in bit k; after log2(ranks) steps every rank has the sum.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/algorithm.hpp>
#include <baton/ir/algorithm_json.hpp>
#include <baton/ir/verify.hpp>
#include <baton/runtime/interpreter.hpp>

#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace baton;

namespace {

ir::Algorithm hypercube(int ranks) {
    if (ranks < 1 || ranks > 1024 || (ranks & (ranks - 1)) != 0)
        throw input_error("the number of ranks must be a power of two, at most 1024");
    ir::Collective collective;
    collective.kind = ir::CollectiveKind::all_reduce;
    collective.ranks = ranks;
    collective.chunks = 1;
    ir::AlgorithmBuilder builder("hypercube", collective);
    // Each rank starts with its own contribution.
    for (int rank = 0; rank < ranks; ++rank)
        builder.copy({rank, ir::Buffer::input, 0}, {rank, ir::Buffer::output, 0});
    for (int bit = 1; bit < ranks; bit *= 2) {
        // Both ranks of a pair read before either writes: the steps of a par block see the state before it.
        builder.begin_par();
        for (int rank = 0; rank < ranks; ++rank)
            builder.send_reduce({rank, ir::Buffer::output, 0}, {rank ^ bit, ir::Buffer::output, 0});
        builder.end_par();
    }
    return builder.build();
}

/// Whether the program adds up what this function puts into its buffers.
bool sums(const ir::Program& program) {
    const int ranks = program.collective.ranks;
    runtime::CallArguments arguments;
    arguments.count = 1000;
    arguments.type = ir::DataType::i32;
    arguments.op = ir::ReduceOp::sum;
    std::vector<std::vector<std::int32_t>> inputs, outputs;
    std::vector<runtime::RankBuffers> buffers;
    for (int rank = 0; rank < ranks; ++rank) {
        inputs.emplace_back();
        for (int i = 0; i < arguments.count; ++i) inputs.back().push_back(rank * i);
        outputs.emplace_back(arguments.count, -1);
    }
    for (int rank = 0; rank < ranks; ++rank) buffers.push_back({inputs[rank].data(), outputs[rank].data()});
    const runtime::InterpretReport report = runtime::Interpreter(program).run(arguments, buffers);
    std::printf("ran %lld instructions, %lld messages\n", static_cast<long long>(report.instructions),
                static_cast<long long>(report.messages));
    for (const std::vector<std::int32_t>& output : outputs) {
        for (int i = 0; i < arguments.count; ++i) {
            if (output[i] != ranks * (ranks - 1) / 2 * i) return false;
        }
    }
    return true;
}

int run(int ranks, const char* file) {
    const ir::Algorithm algorithm = hypercube(ranks);
    // Throws with the place, the value expected there and the value found when the algorithm is wrong.
    const ir::AlgorithmReport proof = ir::verify(algorithm);
    std::printf("%lld steps, %s\n", static_cast<long long>(proof.steps),
                std::string(to_string(proof.assurance)).c_str());
    if (file != nullptr) write_file(file, ir::to_json(algorithm));
    const bool right = sums(codegen::lower(algorithm));
    std::printf("%s\n", right ? "right" : "wrong");
    return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2 || argc > 3) {
        std::fprintf(stderr, "usage: %s RANKS [FILE]\n", argv[0]);
        return 2;
    }
    try {
        return run(std::atoi(argv[1]), argc == 3 ? argv[2] : nullptr);
    } catch (const Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return exit_code(error.kind());
    }
}
