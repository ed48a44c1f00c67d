// Readings of the ranks of a machine as a group of shifts: dimensions of a torus, hosts and their GPUs.
#pragma once

#include <utility>
#include <vector>

namespace baton::synth {

/// Shifts of ranks as digits of a mixed radix, most significant first. Shifts are numbered as the ranks that
/// they take rank 0 to.
class Shifts {
public:
    explicit Shifts(std::vector<int> radix) : radix_(std::move(radix)) {}
    /// The rank to which shift `g` takes rank `x`.
    int add(int x, int g) const;
    /// The shift that takes back what `g` does.
    int inverse(int g) const;

private:
    std::vector<int> radix_;
};

/// Radices in which the ranks can be read, at most 80: those that keep hosts (per rank) together first, then
/// all of up to four digits, and all digits two where that is more.
std::vector<std::vector<int>> shift_readings(int ranks, const std::vector<int>& hosts);

}  // namespace baton::synth
