#include <baton/synth/rank_shifts.hpp>

#include <baton/base/index.hpp>

#include <algorithm>
#include <cstddef>

namespace baton::synth {
namespace {

// Ordered factorizations of n into at most `parts` factors of two or more, fewest factors first.
void factor(int n, std::size_t parts, std::vector<int>& prefix, std::vector<std::vector<int>>& found) {
    if (n == 1) {
        found.push_back(prefix);
        return;
    }
    if (parts == 0) return;
    for (int f = 2; f <= n; ++f) {
        if (n % f != 0) continue;
        prefix.push_back(f);
        factor(n / f, parts - 1, prefix, found);
        prefix.pop_back();
    }
}

}  // namespace

int Shifts::add(int x, int g) const {
    int sum = 0, place = 1;
    for (std::size_t i = radix_.size(); i-- > 0;) {
        const int n = radix_[i];
        sum += (x % n + g % n) % n * place;
        x /= n, g /= n, place *= n;
    }
    return sum;
}

int Shifts::inverse(int g) const {
    int sum = 0, place = 1;
    for (std::size_t i = radix_.size(); i-- > 0;) {
        sum += (radix_[i] - g % radix_[i]) % radix_[i] * place;
        g /= radix_[i], place *= radix_[i];
    }
    return sum;
}

std::vector<std::vector<int>> shift_readings(int ranks, const std::vector<int>& hosts) {
    std::vector<std::vector<int>> found, plain;
    int per_host = 1;
    while (per_host < ranks && hosts[at(per_host)] == hosts[0]) ++per_host;
    std::vector<int> prefix;
    if (per_host > 1 && per_host < ranks && ranks % per_host == 0) {
        prefix = {ranks / per_host};
        factor(per_host, 4, prefix, found);
        prefix.clear();
    }
    factor(ranks, 4, prefix, plain);
    std::stable_sort(plain.begin(), plain.end(),
                     [](const auto& a, const auto& b) { return a.size() < b.size(); });
    found.insert(found.end(), plain.begin(), plain.end());
    if ((ranks & (ranks - 1)) == 0 && ranks > 16) {
        prefix.clear();
        for (int n = ranks; n > 1; n /= 2) prefix.push_back(2);
        found.push_back(prefix);
    }
    constexpr std::size_t kMost = 80;
    if (found.size() > kMost) found.resize(kMost);
    return found;
}

}  // namespace baton::synth
