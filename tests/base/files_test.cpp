#include <baton/base/error.hpp>
#include <baton/base/files.hpp>

#include <doctest/doctest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

using namespace baton;
namespace fs = std::filesystem;

namespace {

/// A folder that goes when the test ends.
struct Folder {
    fs::path path = fs::temp_directory_path() / ("baton-files-test-" + std::to_string(::getpid()));
    Folder() { fs::create_directories(path); }
    ~Folder() { fs::remove_all(path); }
};

}  // namespace

TEST_CASE("a file is written whole, below folders that did not exist") {
    const Folder folder;
    const std::string path = (folder.path / "a" / "b" / "out.json").string();
    write_file(path, std::string("one\0two", 7));
    CHECK(read_file(path) == std::string("one\0two", 7));
    write_file(path, "");
    CHECK(read_file(path).empty());
    int entries = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder.path / "a" / "b")) ++entries;
    CHECK(entries == 1);  // no temporary file stays behind
}

TEST_CASE("readers see the old file or the new one, never a part") {
    const Folder folder;
    const std::string path = (folder.path / "shared").string();
    const std::string first(200'000, 'a'), second(300'000, 'b');
    write_file(path, first);
    std::thread writer([&] {
        for (int i = 0; i < 20; ++i) write_file(path, i % 2 ? first : second);
    });
    bool whole = true;
    for (int i = 0; i < 200; ++i) {
        const std::string seen = read_file(path);
        whole = whole && (seen == first || seen == second);
    }
    writer.join();
    CHECK(whole);
}

TEST_CASE("a file that cannot be read or written is named") {
    const Folder folder;
    for (const std::string& path : {(folder.path / "absent").string(), folder.path.string()}) {
        try {
            read_file(path);
            FAIL("accepted");
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::input);
            CHECK(std::string(error.what()).find(path) != std::string::npos);
        }
    }
    std::ofstream(folder.path / "big") << std::string(1000, 'x');
    CHECK_THROWS_AS(read_file((folder.path / "big").string(), 999), Error);
    CHECK(read_file((folder.path / "big").string(), 1000).size() == 1000);
    CHECK_THROWS_AS(write_file((folder.path / "big" / "below-a-file").string(), "x"), Error);
    CHECK_THROWS_AS(write_file(folder.path.string(), "x"), Error);
}

TEST_CASE("an endless file is refused at the limit") {
    if (!fs::exists("/dev/zero")) return;
    CHECK_THROWS_AS(read_file("/dev/zero", 1 << 20), Error);
}
