// Real files of the field, read where they lie: the folder that BATON_FIELD_DIR names, else ../shared/field
// beside the sources. Where there is none, tests that want it say so and pass.
#pragma once

#include <baton/base/error.hpp>
#include <baton/base/files.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace baton::test {

/// The folder, whether it is there or not.
inline std::string field_folder() {
    const char* value = std::getenv("BATON_FIELD_DIR");
    return value != nullptr && *value != 0 ? value : BATON_SOURCE_DIR "/../shared/field";
}

/// True when the folder is there. Otherwise says in the output that the test case is skipped.
inline bool field_present() {
    std::error_code failed;
    if (std::filesystem::is_directory(field_folder(), failed)) return true;
    const std::string folder = field_folder();
    MESSAGE("skipped: no files of the field in ", folder, " (BATON_FIELD_DIR names another folder)");
    return false;
}

/// Text of a file by its path in the folder ("smi/single-gpu.txt"); nothing, and a line in the output, when
/// the folder is absent. A file that is missing from a folder that is there is a failure of the test.
inline std::optional<std::string> field_file(const std::string& path) {
    if (!field_present()) return std::nullopt;
    return read_file(field_folder() + "/" + path);
}

/// Paths of all files below one of its folders ("smi"), sorted; none when it is absent.
inline std::vector<std::string> field_files(const std::string& folder) {
    std::vector<std::string> paths;
    if (!field_present()) return paths;
    for (const auto& entry : std::filesystem::directory_iterator(field_folder() + "/" + folder))
        if (entry.is_regular_file()) paths.push_back(folder + "/" + entry.path().filename().string());
    std::sort(paths.begin(), paths.end());
    return paths;
}

/// The countable facts of a file in expected.json; null when it lists none for it, or the folder is absent.
inline nlohmann::json expected(const std::string& path) {
    if (!field_present()) return nullptr;
    static const nlohmann::json all = nlohmann::json::parse(read_file(field_folder() + "/expected.json"));
    return all.value(path, nlohmann::json());
}

}  // namespace baton::test
