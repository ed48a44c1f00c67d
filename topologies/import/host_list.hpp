// Names of hosts as SLURM and topograph write them: "n[1-4,07],login". Internal to the layer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace baton::topologies {

/// All names of a list in its order. Numbers in brackets keep their width ("n[08-10]": n08, n09, n10);
/// several brackets in one name multiply, the last one the fastest. Throws an input error at `where` for
/// brackets that do not close, ranges that run backwards, and lists of more than `most` names.
std::vector<std::string> expand_host_list(std::string_view list, const std::string& where, std::size_t most);

/// Expands lists of one file, at most so many names together that no file takes unbounded time.
class HostLists {
public:
    /// As expand_host_list; names count towards the limit each time they are listed.
    std::vector<std::string> expand(std::string_view list, const std::string& where);

private:
    std::size_t left_ = std::size_t{1} << 22;
};

}  // namespace baton::topologies
