"""Three things the kernel needs from the machine and numba does not offer: two memory accesses and an exponent."""

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic


@intrinsic
def load(typingctx, address, index):
    """int64 at address + 8*index. Bare addresses: no reference counts, and they stay in registers."""

    def codegen(context, builder, signature, args):
        base = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load(builder.gep(base, [args[1]]))

    return types.int64(types.uint64, types.uint64), codegen


@intrinsic
def store(typingctx, address, index, value):
    """int64 `value` to address + 8*index."""

    def codegen(context, builder, signature, args):
        base = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        builder.store(args[2], builder.gep(base, [args[1]]))
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.int64), codegen


@intrinsic
def exponent(typingctx, number):
    """The e with 2^(e-1) <= number < 2^e, from the bits of a positive float64 (-1022 for denormals)."""

    def codegen(context, builder, signature, args):
        bits = builder.bitcast(args[0], ir.IntType(64))
        return builder.sub(builder.lshr(bits, ir.IntType(64)(52)), ir.IntType(64)(1022))

    return types.int64(types.float64), codegen
