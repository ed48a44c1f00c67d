// What is said of a network that was imported from another tool, and figures in other tools' units. Internal
// to the layer.
#pragma once

#include <baton/topologies/import/importer.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::topologies {

/// Finishes the topology and adds to `found`: ranks, hosts and switches; links by kind, ends and figures;
/// parts that nothing joins become a warning. Throws an input error named by the source.
void finish_network(const ImportSource& source, Imported& result);

/// A rate or latency from a file's number; nothing unless it is positive (latency: not negative) and within
/// the limits of a topology.
std::optional<Rate> rate_of(double bytes_per_second);
std::optional<Time> latency_of(double seconds);

/// What links get that a file gives no rate or no latency.
inline constexpr Rate kAssumedRate{50'000'000'000};
inline constexpr Time kAssumedLatency{500'000};

/// True for names of switches where a file says nothing else: those that start with "switch" or "sw".
bool is_switch_name(std::string_view name);

/// Refuses sizes beyond the limits of a topology before anything is made: so many nodes and directed links.
void check_size(double nodes, double directed_links, const std::string& where);

/// A text of a file as part of a node's id: what ids must not hold becomes '_', and it is cut after 200
/// bytes.
std::string id_text(std::string_view text);

/// Appends "left out: A, B, ..." for keys of a file that have no counterpart, if there are any.
void warn_left_out(const std::vector<std::string>& keys, const std::string& why, Imported& result);

}  // namespace baton::topologies
