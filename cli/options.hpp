// Option values that several commands take, each with one parser.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace baton::cli {

/// `--param K=V`, any number of times. Throws an input error for a missing '=', an empty name, a value that
/// is no integer, and a name given twice.
std::map<std::string, std::int64_t> parse_params(const std::vector<std::string>& texts);

/// "A..B" (both included) or one number, each within [low, high]. Throws an input error that names `option`.
std::pair<int, int> parse_count_range(const std::string& text, const std::string& option, int low, int high);

/// `path` as it must be typed into a shell: quoted when it holds anything but letters, digits and ./_-+:=@%,
std::string shell_word(const std::string& path);

}  // namespace baton::cli
