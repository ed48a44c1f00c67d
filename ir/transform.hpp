// Algorithms from algorithms: the reverse of one, and one after another.
#pragma once

#include <baton/ir/algorithm.hpp>

namespace baton::ir {

/// The collective that the reverse of an algorithm serves: scatter <-> gather, all_gather <-> reduce_scatter,
/// broadcast
/// <-> reduce; all_reduce and all_to_all stay, send_recv swaps sender and receiver. Throws an input error for
/// `custom`.
Collective reverse(const Collective& collective);

/// Runs every step backwards, from its destination to its source; what was written is then added, so that
/// copies become reductions where several meet and reductions become copies. A right algorithm for K gives a
/// right algorithm for reverse(K), with as many messages of the same lengths or fewer (values that nobody
/// used are not moved). Steps are explicit; channel and protocol hints stay, pinned routes go, since they
/// lead the other way. Inputs are never written, so partial sums stand in scratch. Throws an input error for
/// custom collectives and switch steps, and above 50 million steps.
Algorithm reverse(const Algorithm& algorithm);

/// The collective that two collectives one after the other serve: (reduce, broadcast) and (reduce_scatter,
/// all_gather) give all_reduce; (gather, broadcast) all_gather; (reduce, scatter) reduce_scatter; (scatter,
/// all_gather) broadcast; (reduce_scatter, gather) reduce. Every other pair whose places fit gives a custom
/// collective, all_to_all after all_to_all for one. Throws an input error in words when ranks, groups, roots,
/// chunks or weights do not fit: the kind with shards has C chunks, the kind without them N*C.
Collective concatenate(const Collective& first, const Collective& second);

/// Both algorithms one after the other, for the collective above: the results of the first are the inputs of
/// the second. They stand in the output where the second, run in place, expects its input there, else in
/// scratch. Right algorithms give a right algorithm. Steps are explicit. Throws an input error when the
/// collectives do not fit or the algorithms belong to different topologies.
Algorithm concatenate(const Algorithm& first, const Algorithm& second);

}  // namespace baton::ir
