#include <baton/synth/bound.hpp>

#include <baton/synth/max_flow.hpp>
#include <baton/synth/participants.hpp>

#include <algorithm>

namespace baton::synth {

Bound bound(const topologies::Topology& topology, const ir::Collective& collective) {
    collective.check();
    Bound found;
    found.collective = collective;
    found.latency = latency_bound(topology, collective);
    found.bandwidth = bandwidth_bound(topology, collective);
    return found;
}

Time Bound::bandwidth_time(Bytes size) const {
    // demand < 2^41 and bytes < 2^63, so the product fits 128 bits.
    const Rational& rate = bandwidth.seconds_per_byte;
    const Wide bytes = static_cast<Wide>(unit_bytes(collective, size)) * rate.num();
    constexpr std::int64_t kPicoseconds = 1'000'000'000'000;
    const Wide seconds = bytes / rate.den(), rest = bytes % rate.den();
    const Wide picoseconds = seconds > INT64_MAX / kPicoseconds
                                 ? Wide{INT64_MAX}
                                 : seconds * kPicoseconds + rest * kPicoseconds / rate.den();
    return {static_cast<std::int64_t>(std::min<Wide>(picoseconds, INT64_MAX))};
}

Time Bound::at(Bytes size) const {
    if (unit_bytes(collective, size) <= 0) return {};
    return std::max(latency.time, bandwidth_time(size));
}

double Bound::algbw() const {
    const double seconds = bandwidth.seconds_per_byte.value();
    return seconds > 0 ? static_cast<double>(units_per_buffer(collective)) / seconds : 0;
}

}  // namespace baton::synth
