#include <baton/runtime/content_hash.hpp>

#include <bit>
#include <cstring>

namespace baton::runtime {

namespace {

constexpr std::uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(const unsigned char* p) {
    return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
}

}  // namespace

ContentHash::ContentHash()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {
}

void ContentHash::block(const unsigned char* data) {
    std::uint32_t w[64];
    for (int i = 0; i < 16; ++i) w[i] = big_endian(data + 4 * i);
    for (int i = 16; i < 64; ++i) {
        const std::uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] +
               (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
    }
    std::array<std::uint32_t, 8> v = state_;
    for (int i = 0; i < 64; ++i) {
        const std::uint32_t e = v[4], a = v[0];
        const std::uint32_t one = v[7] + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                  ((e & v[5]) ^ (~e & v[6])) + kRound[i] + w[i];
        const std::uint32_t two = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) +
                                  ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        v = {one + two, v[0], v[1], v[2], v[3] + one, v[4], v[5], v[6]};
    }
    for (int i = 0; i < 8; ++i) state_[i] += v[i];
}

ContentHash& ContentHash::add(std::string_view bytes) {
    const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
    std::size_t left = bytes.size(), held = length_ % 64;
    length_ += left;
    while (left > 0) {
        if (held == 0 && left >= 64) {
            block(data);
            data += 64, left -= 64;
            continue;
        }
        const std::size_t n = std::min(left, 64 - held);
        std::memcpy(pending_.data() + held, data, n);
        data += n, left -= n, held += n;
        if (held == 64) block(pending_.data()), held = 0;
    }
    return *this;
}

ContentHash& ContentHash::add_field(std::string_view bytes) {
    const std::uint64_t size = bytes.size();
    char text[8];
    for (int i = 0; i < 8; ++i) text[i] = static_cast<char>(size >> 8 * i);
    return add({text, 8}).add(bytes);
}

std::string ContentHash::hex() {
    const std::uint64_t bits = length_ * 8;
    std::string tail(1, '\x80');
    while ((length_ + tail.size()) % 64 != 56) tail += '\0';
    for (int i = 7; i >= 0; --i) tail += static_cast<char>(bits >> 8 * i);
    add(tail);
    std::string text;
    for (const std::uint32_t word : state_) {
        for (int i = 7; i >= 0; --i) text += "0123456789abcdef"[word >> 4 * i & 15];
    }
    return text;
}

std::string content_hash(std::string_view bytes) { return ContentHash().add(bytes).hex(); }

}  // namespace baton::runtime
