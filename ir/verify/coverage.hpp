// A set of integers kept as disjoint ranges.
#pragma once

#include <cstdint>
#include <map>

namespace baton::ir {

class Coverage {
public:
    void add(std::int64_t begin, std::int64_t end);
    /// The smallest member that is not in `other`; -1 when all are.
    std::int64_t first_outside(const Coverage& other) const;

private:
    std::map<std::int64_t, std::int64_t> ranges_;  // begin -> end
};

}  // namespace baton::ir
