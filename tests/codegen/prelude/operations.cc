// One kernel per (operator, type) and shape, to compile the movers. OPERATION(op, type) entries are generated.

using namespace baton_kernel;

template <class Op, class Element>
BATON_FN void shapes(const Block& block) {
    u8 *const a = block.output(), *const b = block.scratch();
    const u8* const c = block.input();
    const u64 n = block.arguments.count;
    move<Op, Element>(block, {a}, {b, c}, n);
    move<Op, Element, 0, 0, true>(block, {a, b}, {c, a, b}, n);
    if constexpr (same<typename Element::Value, float>::value && sizeof(typename Element::Bits) < 4) {
        move<Op, Element, 1, 1>(block, {a}, {b, c}, n);
        move<Op, Element, 1, 2, true>(block, {a, b}, {b, c}, n);
    }
}

#define OPERATION(name, o, e)                 \
    BATON_KERNEL(name, 512) {                 \
        BATON_BLOCK(block);                   \
        shapes<op::o, element::e>(block);     \
    }
