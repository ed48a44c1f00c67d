// Runs one algorithm inside another: on some of its ranks, with its places standing elsewhere.
#pragma once

#include <baton/ir/algorithm.hpp>

#include <cstdint>
#include <functional>
#include <vector>

namespace baton::synth {

/// The number of a place as steps hold it, the first of `chunks`. Throws an input error outside of 0..2^31-1.
std::int32_t place_number(std::int64_t index, std::int64_t chunks);

/// Where a place of an embedded algorithm stands; the `run - 1` places after it follow it there.
struct Placed {
    ir::Buffer buffer = ir::Buffer::output;
    std::int64_t index = 0;
    std::int64_t run = 1;
};

/// Where place (buffer, index) at a rank of the embedded algorithm stands at the rank it is mapped to.
using PlaceMap = std::function<Placed(int rank, ir::Buffer buffer, std::int64_t index)>;

struct EmbedOptions {
    int channel = -1;  ///< hint given to all steps when 0 or above
    int skip_to =
        -1;  ///< leave out what other ranks send to this rank of `part`: it holds the values already
};

/// Appends the steps of `part`, its rank i being rank `ranks[i]`, its places where `place` puts them. A run
/// that is torn apart becomes several steps; copies of a place to itself are left out. Input and output of
/// `part` may be mapped to the same places where its collective allows in-place calls.
void embed(const ir::Algorithm& part, const std::vector<int>& ranks, const PlaceMap& place,
           std::vector<ir::Step>& steps, const EmbedOptions& options = {});

/// An algorithm of these steps over communicator ranks.
ir::Algorithm explicit_algorithm(std::string name, ir::Collective collective, std::vector<ir::Step> steps);

}  // namespace baton::synth
