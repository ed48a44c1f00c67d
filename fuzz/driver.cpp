// Replays a corpus and random mutations of it through a fuzz target, with a fixed seed: the same run
// everywhere. usage: fuzz_NAME CORPUS_DIR [-runs N | -seconds S]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

void feed(const Input& input) { LLVMFuzzerTestOneInput(input.data(), input.size()); }

Input mutated(const std::vector<Input>& corpus, std::mt19937_64& random) {
    Input input = corpus[random() % corpus.size()];
    const int changes = 1 + static_cast<int>(random() % 6);
    for (int change = 0; change < changes; ++change) {
        const std::size_t at = input.empty() ? 0 : random() % input.size();
        switch (random() % 6) {
            case 0:
                if (!input.empty()) input[at] = static_cast<std::uint8_t>(random());
                break;
            case 1:
                input.insert(input.begin() + static_cast<std::ptrdiff_t>(at),
                             static_cast<std::uint8_t>(random()));
                break;
            case 2:
                if (!input.empty()) input.erase(input.begin() + static_cast<std::ptrdiff_t>(at));
                break;
            case 3: input.resize(at); break;
            case 4: {  // splice a piece of another input
                const Input& other = corpus[random() % corpus.size()];
                if (other.empty()) break;
                const std::size_t from = random() % other.size();
                const std::size_t length = std::min<std::size_t>(other.size() - from, 1 + random() % 64);
                input.insert(input.begin() + static_cast<std::ptrdiff_t>(at),
                             other.begin() + static_cast<std::ptrdiff_t>(from),
                             other.begin() + static_cast<std::ptrdiff_t>(from + length));
                break;
            }
            default: {  // numbers are where parsers break
                static const char* kNumbers[] = {
                    "-1", "0", "1e308", "9223372036854775807", "18446744073709551616", "0.5"};
                const std::string number = kNumbers[random() % std::size(kNumbers)];
                input.insert(input.begin() + static_cast<std::ptrdiff_t>(at), number.begin(), number.end());
            }
        }
    }
    return input;
}

}  // namespace

int main(int argc, char** argv) {
    long runs = 3000;
    double seconds = 0;
    std::vector<Input> corpus;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "-runs" && i + 1 < argc) {
            runs = std::atol(argv[++i]);
        } else if (word == "-seconds" && i + 1 < argc) {
            seconds = std::atof(argv[++i]);
        } else if (std::filesystem::is_directory(word)) {
            std::vector<std::filesystem::path> files;
            for (const auto& entry : std::filesystem::directory_iterator(word)) files.push_back(entry.path());
            std::sort(files.begin(), files.end());
            for (const auto& file : files) {
                std::ifstream stream(file, std::ios::binary);
                corpus.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
            }
        }
    }
    if (corpus.empty()) {
        std::fprintf(stderr, "no corpus found\n");
        return 1;
    }
    for (const Input& input : corpus) feed(input);
    std::mt19937_64 random(20240601);
    const auto start = std::chrono::steady_clock::now();
    long done = 0;
    while (seconds > 0
               ? std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds
               : done < runs) {
        feed(mutated(corpus, random));
        ++done;
    }
    std::printf("%zu corpus files and %ld mutations without a finding\n", corpus.size(), done);
    return 0;
}
