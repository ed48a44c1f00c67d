// The smallest use of the library: a collective written with the builder and verified.
#include <baton/base/error.hpp>
#include <baton/ir/algorithm.hpp>
#include <baton/ir/collective.hpp>

#include <cstdio>

int main() {
    using namespace baton;
    ir::Collective collective;
    collective.kind = ir::CollectiveKind::all_gather;
    collective.ranks = 2;
    ir::AlgorithmBuilder builder("pair", collective);
    for (int rank = 0; rank < 2; ++rank) {
        builder.copy({rank, ir::Buffer::input, 0}, {rank, ir::Buffer::output, rank});
        builder.send({rank, ir::Buffer::input, 0}, {1 - rank, ir::Buffer::output, rank});
    }
    const ir::Algorithm algorithm = builder.build();
    std::printf("%lld steps\n", static_cast<long long>(algorithm.step_count()));
    return algorithm.step_count() == 4 ? 0 : 1;
}
