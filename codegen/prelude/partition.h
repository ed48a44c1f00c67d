// Which elements a tile of a chunk covers: the partition rule of ir::Partition. Divisions are done once per call.

namespace baton_kernel {

struct Range {
    u64 begin, size;    // elements, begin relative to the shard
};

// A class is given by its prefix weights [w0, w1); with equal weights class k is [k, k + 1).
struct Partition {
    u64 count, units_per_weight, longer;    // the first `longer` weights have one unit more
    u64 short_quotient, long_quotient;      // units of a tile of a weight-1 class: units_per_weight (+ 1) / tiles
    u32 short_rest, long_rest, tiles, unit;
    u32 first_tile;     // of this call: scratch places hold the tiles from this one on

    // `unit`: elements per 16 bytes of the data type; `weights`: their sum, the number of classes when equal.
    BATON_FN Partition(const baton_arguments& arguments, u32 elements_per_unit, u64 weights) {
        count = arguments.count;
        unit = elements_per_unit;
        tiles = arguments.tiles;
        first_tile = arguments.first_tile;
        const u64 units = count / unit + (count % unit != 0);
        units_per_weight = units / weights;
        longer = units % weights;
        short_quotient = units_per_weight / tiles;
        short_rest = u32(units_per_weight % tiles);
        long_quotient = (units_per_weight + 1) / tiles;
        long_rest = u32((units_per_weight + 1) % tiles);
    }

    BATON_FN u64 first_unit(u64 weight) const { return units_per_weight * weight + least(weight, longer); }

    // First element of the class whose prefix weight is w0.
    BATON_OUTLINE u64 class_begin(u64 w0) const { return least(count, unit * first_unit(w0)); }

    // Tile t of class k, all weights equal.
    BATON_OUTLINE Range tile(u64 k, u32 t) const {
        const bool is_long = k < longer;
        return cut(first_unit(k), is_long ? long_quotient : short_quotient, is_long ? long_rest : short_rest, t);
    }
    // Tile t of the class with prefix weights [w0, w1).
    BATON_OUTLINE Range tile(u64 w0, u64 w1, u32 t) const {
        const u64 first = first_unit(w0), units = first_unit(w1) - first;
        return cut(first, units / tiles, u32(units % tiles), t);
    }

private:
    BATON_FN Range cut(u64 first, u64 quotient, u32 rest, u32 t) const {
        const u64 begin = least(count, unit * (first + t * quotient + least(t, rest)));
        const u64 end = least(count, unit * (first + (t + 1ull) * quotient + least(t + 1ull, rest)));
        return {begin, end - begin};
    }
};

// Bytes that `size` elements of `width` bytes take in a slot: pieces of one message begin at multiples of 16.
BATON_FN u64 slot_piece(u64 size, u32 width) { return (size * width + 15) & ~15ull; }

}  // namespace baton_kernel
