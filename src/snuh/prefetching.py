"""A hint for kernels: memory that is needed soon can be on its way while something else is done."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from snuh.compiling import Kernel


def _prefetch(context: Any, array: Any, index: Any) -> Any:  # whatever numba's compiler hands over
    """In a kernel: let the processor fetch `array[index]` of a contiguous array; changes no value."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(builder.gep(held.data, [arguments[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        hint: Any = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        # To read it, keep it in all caches, and it is data.
        builder.call(hint, [place, *(ir.Constant(number, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


prefetch: Kernel = intrinsic(_prefetch)
