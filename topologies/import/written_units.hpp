// Rates and times with their units, as files of other tools write them. Internal to the layer.
#pragma once

#include <optional>
#include <string_view>

namespace baton::topologies {

/// Bytes per second in one of a rate's unit: "Gbps", "Gb/s", "Gbit/s", "MBps", "GiB/s", "gbps" (bits), "B/s".
/// 'b' is bits and 'B' bytes; prefixes k K M G T P and Ki Mi Gi Ti Pi, small ones too. Nothing for others.
std::optional<double> rate_unit(std::string_view name);

/// Seconds in one of a time's unit: ps ns us ms s m h d w, "usec" and the like. Nothing for others.
std::optional<double> time_unit(std::string_view name);

/// "400Gbps" or "400 Gb/s" in bytes per second; a number without a unit counts `bare` bytes per second each,
/// or is nothing when `bare` is 0.
std::optional<double> written_rate(std::string_view text, double bare);

/// "1.5us" in seconds; a number without a unit counts `bare` seconds each, or is nothing when `bare` is 0.
std::optional<double> written_time(std::string_view text, double bare);

}  // namespace baton::topologies
