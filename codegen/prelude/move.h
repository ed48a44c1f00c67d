// The data mover: destinations := op(sources) in one pass, operands folded left to right, ((s0 op s1) op s2) ...,
// rounded once when stored. Bit s of kWideSources says that source s holds f32 instead of the data type (the wire type
// of wide reductions), likewise kWideDestinations. kFinalize completes the value (see reduce.h) and rounds it to the
// data type also for wide destinations. One source of the same width without kFinalize is copied bit for bit.
// Sources and destinations may coincide exactly; other overlap is not allowed.

namespace baton_kernel {

template <class Op, class Element, int kSources, int kDestinations, u32 kWideSources, u32 kWideDestinations,
          bool kFinalize>
struct Mover {
    static_assert(kSources >= 1 && kDestinations >= 1, "an instruction has sources and destinations");
    static_assert(kSources <= 32 && kDestinations <= 32, "width masks have 32 bits");
    typedef typename Element::Bits Bits;
    typedef typename Element::Value Value;
    BATON_FN static constexpr bool source_wide(int s) { return (kWideSources >> s & 1) != 0; }
    BATON_FN static constexpr bool destination_wide(int d) { return (kWideDestinations >> d & 1) != 0; }
    BATON_FN static constexpr u32 width(bool wide) { return wide ? u32(sizeof(float)) : u32(sizeof(Bits)); }
    BATON_FN static constexpr u32 all(int n) { return n == 32 ? ~0u : (1u << n) - 1u; }
    static constexpr bool kCopies = kSources == 1 && !kFinalize &&
                                    kWideDestinations == (source_wide(0) ? all(kDestinations) : 0u);

    const u8* source[kSources];
    u8* destination[kDestinations];
    u32 contributions;

    BATON_FN static Value complete(Value value, u32 contributions) {
        if constexpr (!kFinalize) return value;
        else if constexpr (kWideDestinations == 0) return Op::finalize(value, contributions);
        else return Element::decode(Element::encode(Op::finalize(value, contributions)));
    }

    template <int s>
    BATON_FN Value load(u64 i) const {
        if constexpr (source_wide(s)) {
            element::f32::Bits bits;
            load_bits(source[s] + i * sizeof bits, bits);
            return element::f32::decode(bits);
        } else {
            Bits bits;
            load_bits(source[s] + i * sizeof bits, bits);
            return Element::decode(bits);
        }
    }
    template <int s>
    BATON_FN Value fold(u64 i) const {
        if constexpr (s == 0) return load<0>(i);
        else return Op::combine(fold<s - 1>(i), load<s>(i));
    }
    template <int d>
    BATON_FN void store(u64 i, Value value) const {
        if constexpr (destination_wide(d))
            store_bits(destination[d] + i * sizeof(float), element::f32::encode(value));
        else
            store_bits(destination[d] + i * sizeof(Bits), Element::encode(value));
        if constexpr (d + 1 < kDestinations) store<d + 1>(i, value);
    }
    template <int d, class Raw>
    BATON_FN void store_raw(u64 i, Raw raw) const {
        store_bits(destination[d] + i * sizeof(Raw), raw);
        if constexpr (d + 1 < kDestinations) store_raw<d + 1>(i, raw);
    }
    BATON_FN void one(u64 i) const {
        if constexpr (kCopies && source_wide(0)) {
            u32 raw;
            load_bits(source[0] + i * sizeof raw, raw);
            store_raw<0>(i, raw);
        } else if constexpr (kCopies) {
            Bits raw;
            load_bits(source[0] + i * sizeof raw, raw);
            store_raw<0>(i, raw);
        } else {
            store<0>(i, complete(fold<kSources - 1>(i), contributions));
        }
    }

#if BATON_ON_DEVICE
    // Elements of the data type that fill 16 bytes; a wide operand then takes 4 bytes for each of them.
    static constexpr int kPack = int(16 / sizeof(Bits));
    static constexpr int kRegisters = (kWideSources != 0 || kWideDestinations != 0) ? kPack : 4;  // words per operand
    // Packs in flight per thread: bounded by the registers of raw words and, for bytes, of the values unpacked from them.
    static constexpr int kWords = kSources * kRegisters * (kCopies || sizeof(Bits) > 1 ? 1 : 2);
    static constexpr int kAtOnce = kWords <= 8 ? 4 : kWords <= 16 ? 2 : 1;

    BATON_FN static constexpr int vectors(bool wide) { return int(kPack * width(wide) / 16); }

    template <class B>
    BATON_FN static B extract(const u32* words, int k) {
        if constexpr (sizeof(B) == 1) return B(words[k / 4] >> (8 * (k % 4)));
        else if constexpr (sizeof(B) == 2) return B(words[k / 2] >> (16 * (k % 2)));
        else if constexpr (sizeof(B) == 4) return words[k];
        else if constexpr (sizeof(B) == 8) return B(words[2 * k]) | B(words[2 * k + 1]) << 32;
        else return {u64(words[0]) | u64(words[1]) << 32, words[2], words[3]};
    }
    template <class B>
    BATON_FN static void insert(u32* words, int k, B bits) {
        if constexpr (sizeof(B) == 1) words[k / 4] |= u32(bits) << (8 * (k % 4));
        else if constexpr (sizeof(B) == 2) words[k / 2] |= u32(bits) << (16 * (k % 2));
        else if constexpr (sizeof(B) == 4) words[k] = bits;
        else if constexpr (sizeof(B) == 8) { words[2 * k] = u32(bits); words[2 * k + 1] = u32(bits >> 32); }
        else { words[0] = u32(bits.value); words[1] = u32(bits.value >> 32); words[2] = bits.index; words[3] = bits.padding; }
    }

    struct Raw { u32 word[4 * (kPack * 4 / 16 > 1 ? kPack * 4 / 16 : 1)]; };

    template <int s>
    BATON_FN void load_raw(Raw (&raw)[kSources], u64 pack) const {
        constexpr int n = vectors(source_wide(s));
        BATON_UNROLL
        for (int v = 0; v < n; ++v) {
            const words16 w = load16(source[s] + (pack * n + v) * 16);
            BATON_UNROLL
            for (int j = 0; j < 4; ++j) raw[s].word[4 * v + j] = w.word[j];
        }
        if constexpr (s + 1 < kSources) load_raw<s + 1>(raw, pack);
    }
    template <int s>
    BATON_FN static Value fold_raw(const Raw (&raw)[kSources], int k) {
        Value value;
        if constexpr (source_wide(s)) value = element::f32::decode(raw[s].word[k]);
        else value = Element::decode(extract<Bits>(raw[s].word, k));
        if constexpr (s == 0) return value;
        else return Op::combine(fold_raw<s - 1>(raw, k), value);
    }
    template <int n>
    BATON_FN static void store_words(u8* at, u64 pack, const u32* word) {
        BATON_UNROLL
        for (int v = 0; v < n; ++v)
            store16(at + (pack * n + v) * 16, {{word[4 * v], word[4 * v + 1], word[4 * v + 2], word[4 * v + 3]}});
    }
    template <int d>
    BATON_FN void store_packs(u64 pack, const u32* narrow, const u32* wide) const {
        if constexpr (destination_wide(d)) store_words<vectors(true)>(destination[d], pack, wide);
        else store_words<1>(destination[d], pack, narrow);
        if constexpr (d + 1 < kDestinations) store_packs<d + 1>(pack, narrow, wide);
    }
    BATON_FN void finish_pack(const Raw (&raw)[kSources], u64 pack) const {
        if constexpr (kCopies) {
            store_packs<0>(pack, raw[0].word, raw[0].word);
        } else {
            u32 narrow[4] = {0, 0, 0, 0};
            Raw wide;
            BATON_UNROLL
            for (int k = 0; k < kPack; ++k) {
                const Value value = complete(fold_raw<kSources - 1>(raw, k), contributions);
                if constexpr (kWideDestinations != all(kDestinations)) insert<Bits>(narrow, k, Element::encode(value));
                if constexpr (kWideDestinations != 0) wide.word[k] = element::f32::encode(value);
            }
            store_packs<0>(pack, narrow, wide.word);
        }
    }

    // Elements to do one by one until all operands lie at 16 bytes; `n` when they never do together.
    BATON_FN u64 head(u64 n) const {
        u64 first = ((16 - (u64(destination[0]) & 15)) & 15) / width(destination_wide(0));
        u64 off = 0;
        BATON_UNROLL
        for (int s = 0; s < kSources; ++s) off |= (u64(source[s]) + first * width(source_wide(s))) & 15;
        BATON_UNROLL
        for (int d = 0; d < kDestinations; ++d) off |= (u64(destination[d]) + first * width(destination_wide(d))) & 15;
        return off == 0 ? least(first, n) : n;
    }
    BATON_FN void run(const Block& block, u64 n) {
        const u64 skipped = head(n);
        for (u64 i = block.thread; i < skipped; i += block.threads) one(i);
        const u64 packs = (n - skipped) / kPack;
        for (u64 i = skipped + packs * kPack + block.thread; i < n; i += block.threads) one(i);
        BATON_UNROLL
        for (int s = 0; s < kSources; ++s) source[s] += skipped * width(source_wide(s));
        BATON_UNROLL
        for (int d = 0; d < kDestinations; ++d) destination[d] += skipped * width(destination_wide(d));
        u64 pack = block.thread;
        for (; pack + u64(kAtOnce - 1) * block.threads < packs; pack += u64(kAtOnce) * block.threads) {
            Raw raw[kAtOnce][kSources];  // all loads are issued before the first use
            BATON_UNROLL
            for (int u = 0; u < kAtOnce; ++u) load_raw<0>(raw[u], pack + u64(u) * block.threads);
            BATON_UNROLL
            for (int u = 0; u < kAtOnce; ++u) finish_pack(raw[u], pack + u64(u) * block.threads);
        }
        if constexpr (kAtOnce > 1) {
            for (; pack < packs; pack += block.threads) {
                Raw raw[kSources];
                load_raw<0>(raw, pack);
                finish_pack(raw, pack);
            }
        }
    }
#else
    // Each thread a contiguous slice, so that the loop vectorizes for every team.
    BATON_FN void run(const Block& block, u64 n) {
        const u64 begin = n * block.thread / block.threads, end = n * (block.thread + 1) / block.threads;
        if constexpr (kCopies) {
            const u64 w = width(source_wide(0));
            for (int d = 0; d < kDestinations; ++d)
                if (destination[d] != source[0] && end > begin)
                    __builtin_memcpy(destination[d] + begin * w, source[0] + begin * w, (end - begin) * w);
        } else {
            const Mover mover = *this;
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
            for (u64 i = begin; i < end; ++i) mover.one(i);
        }
    }
#endif
};

// destination[d][0, n) := op(source[0][0, n), source[1][0, n), ...) by all threads of the block. No barrier inside.
template <class Op, class Element, u32 kWideSources = 0, u32 kWideDestinations = 0, bool kFinalize = false,
          int kDestinations, int kSources>
BATON_OUTLINE void move(const Block& block, void* const (&destination)[kDestinations],
                   const void* const (&source)[kSources], u64 n) {
    if (block.failed || n == 0) return;
    Mover<Op, Element, kSources, kDestinations, kWideSources, kWideDestinations, kFinalize> mover;
    BATON_UNROLL
    for (int s = 0; s < kSources; ++s) mover.source[s] = static_cast<const u8*>(source[s]);
    BATON_UNROLL
    for (int d = 0; d < kDestinations; ++d) mover.destination[d] = static_cast<u8*>(destination[d]);
    mover.contributions = block.arguments.contributions;
    mover.run(block, n);
}

// Copies n elements to each destination, bit for bit.
template <class Element, int kDestinations>
BATON_FN void copy(const Block& block, void* const (&destination)[kDestinations], const void* source, u64 n) {
    const void* const sources[1] = {source};
    move<op::sum, Element>(block, destination, sources, n);
}

}  // namespace baton_kernel
