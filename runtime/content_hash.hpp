// SHA-256: names cached binaries by what they were made from, and tells when one was damaged.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace baton::runtime {

/// Incremental SHA-256 (FIPS 180-4).
class ContentHash {
public:
    ContentHash();
    ContentHash& add(std::string_view bytes);
    /// As `add`, with the length in front, so that ("ab", "c") and ("a", "bc") differ.
    ContentHash& add_field(std::string_view bytes);
    /// 64 lower-case hex digits. The object takes no more bytes afterwards.
    std::string hex();

private:
    void block(const unsigned char* data);
    std::array<std::uint32_t, 8> state_;
    std::array<unsigned char, 64> pending_{};
    std::uint64_t length_ = 0;
};

/// Of one text.
std::string content_hash(std::string_view bytes);

}  // namespace baton::runtime
