// Loads a folder that `baton codegen` wrote and calls its collective on buffers of this program, in C++:
//
//     baton codegen ring_all_reduce.json --ranks 4 --host -o module
//     load_module_cpp module            on this machine's processors
//     load_module_cpp module cuda       on GPU 0, which all ranks share (generate with --arch sm_90 or the
//     like)
//
// Any collective, with every type and operator the folder has entries for. Exit code 0: all results are
// right.
#include <baton/base/error.hpp>
#include <baton/runtime/communicator.hpp>
#include <baton/runtime/cpu_backend.hpp>
#include <baton/runtime/cuda_backend.hpp>
#include <baton/runtime/reference.hpp>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

using namespace baton;
using namespace baton::runtime;

namespace {

/// A rank's buffers: as this program sees them, and where the backend wants them.
struct Rank {
    std::vector<unsigned char> input, output, expected;
    RankBuffers host, own;
};

class Call {
public:
    Call(Communicator& communicator, const ir::Collective& collective, const CallArguments& arguments)
        : communicator_(communicator),
          collective_(collective),
          arguments_(arguments),
          ranks_(collective.ranks) {
        std::vector<RankBuffers> host;
        for (int r = 0; r < collective.ranks; ++r) {
            prepare(r);
            host.push_back({ranks_[r].input.data(), ranks_[r].expected.data()});
        }
        reference(collective, arguments, host);
    }
    ~Call() {
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            communicator_.backend().release(static_cast<int>(r), const_cast<void*>(ranks_[r].own.input));
            communicator_.backend().release(static_cast<int>(r), ranks_[r].own.output);
        }
    }
    Call(const Call&) = delete;

    /// Runs all ranks; whether every output is right, bit by bit.
    bool run(const Plan& plan) {
        std::vector<RankBuffers> buffers;
        for (const Rank& rank : ranks_) buffers.push_back(rank.own);
        communicator_.run(plan, arguments_, buffers);
        bool right = true;
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            Rank& rank = ranks_[r];
            if (rank.output.empty()) continue;
            communicator_.backend().read(static_cast<int>(r), rank.output.data(), rank.own.output,
                                         static_cast<std::int64_t>(rank.output.size()));
            const auto elements =
                static_cast<std::int64_t>(rank.output.size()) / ir::size_of(arguments_.type);
            if (const auto wrong =
                    compare(arguments_.type, rank.output.data(), rank.expected.data(), elements)) {
                std::printf("rank %zu: %s\n", r, wrong->words.c_str());
                right = false;
            }
        }
        return right;
    }

private:
    void prepare(int r) {
        Rank& rank = ranks_[r];
        const std::int64_t in =
            buffer_bytes(collective_, r, ir::Buffer::input, arguments_.count, arguments_.type);
        const std::int64_t out =
            buffer_bytes(collective_, r, ir::Buffer::output, arguments_.count, arguments_.type);
        rank.input.resize(in);
        rank.output.resize(out);
        rank.expected.resize(out);
        if (ir::reduces(collective_.kind)) {
            fill_exact(arguments_, collective_.ranks, r, 1, rank.input.data(),
                       in / ir::size_of(arguments_.type));
        } else {
            fill_bits(r, 1, rank.input.data(), in);
        }
        Backend& backend = communicator_.backend();
        if (in > 0) {
            void* input = backend.allocate(r, in);
            rank.own.input = input;
            backend.write(r, input, rank.input.data(), in);
        }
        if (out > 0) rank.own.output = backend.allocate(r, out);
    }

    Communicator& communicator_;
    const ir::Collective& collective_;
    CallArguments arguments_;
    std::vector<Rank> ranks_;
};

int run(const std::string& folder, bool cuda) {
    const std::shared_ptr<const Module> module = Module::load(folder);
    const codegen::Manifest& manifest = module->manifest();
    CommunicatorOptions options;
    options.ranks = manifest.collective.ranks;
    Communicator communicator(cuda ? cuda_backend({std::vector<int>(options.ranks, 0)}) : cpu_backend(),
                              options);
    Plan plan;
    plan.module = module;
    bool right = true;
    for (const codegen::ManifestEntry& entry : manifest.entries) {
        CallArguments arguments;
        arguments.count = 10'007;
        arguments.type = entry.type;
        arguments.op = entry.op.value_or(ir::ReduceOp::sum);
        arguments.nan = entry.nan;
        const bool mine = Call(communicator, manifest.collective, arguments).run(plan);
        std::printf("%s: %s\n", entry.name.c_str(), mine ? "right" : "wrong");
        right = right && mine;
    }
    return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2 || argc > 3 || (argc == 3 && std::strcmp(argv[2], "cuda") != 0)) {
        std::fprintf(stderr, "usage: %s FOLDER [cuda]\n", argv[0]);
        return 2;
    }
    try {
        return run(argv[1], argc == 3);
    } catch (const Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return exit_code(error.kind());
    }
}
