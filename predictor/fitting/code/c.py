"""A fitted model as a C function of one double, which returns a double."""

from collections.abc import Sequence

from sympy.printing.c import C99CodePrinter

from predictor.fitting import generated_code
from predictor.fitting.fitted_model import FittedModel

C_KEYWORDS = """
    alignas alignof asm auto bool break case catch char class const constexpr continue default delete do double else
    enum extern false final float for friend goto if inline int long main namespace new nullptr operator private
    protected public register restrict return short signed sizeof static static_assert struct switch template this
    thread_local throw true try typedef typename typeof union unsigned using virtual void volatile while
"""
C_LIBRARY_NAMES = """
    abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp10 exp2 expm1 fabs fdim
    finite floor fma fmax fmin fmod fpclassify frexp gamma hypot ilogb isfinite isgreater isinf isless isnan isnormal
    j0 j1 jn labs ldexp lgamma linux llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter
    nexttoward pow pow10 remainder remquo rint round scalb scalbln scalbn signbit signgam significand sin sincos sinh
    sqrt tan tanh tgamma trunc unix y0 y1 yn
"""
AVOIDED_NAMES = frozenset((C_KEYWORDS + C_LIBRARY_NAMES).split())
"""Keywords of C and C++, and what <math.h> and compilers declare."""


class _Printer(generated_code.DoublePrinter, C99CodePrinter):  # type: ignore[misc]
    pass


@generated_code.CODES.register("c")
def c_code(models: Sequence[FittedModel]) -> str:
    """A file with one function per model; include it, or compile it and link the mathematics library."""
    names = generated_code.function_names(models, AVOIDED_NAMES)
    functions = [_function(model, name) for model, name in zip(models, names, strict=True)]
    return "#include <math.h>\n\n" + "\n\n".join(functions) + "\n"


def _function(model: FittedModel, name: str) -> str:
    x = generated_code.identifier(model.x, {*AVOIDED_NAMES, name})
    lines = ["/*", *(f" * {fact}" for fact in generated_code.facts(model)), " */"]
    lines += [f"double {name}(double {x});", "", "double", f"{name}(double {x})", "{"]
    if len(model.segments) == 1 and not generated_code.expression(model.segments[0], x).free_symbols:
        lines.append(f"\t(void){x};")
    for value, end in generated_code.branches(model, x, _Printer()):
        lines += [f"\tif ({x} < {end})", f"\t\treturn {value};"] if end else [f"\treturn {value};"]
    return "\n".join([*lines, "}"])
