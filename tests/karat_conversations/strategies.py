"""Programs for property tests: well-formed ones in any spelling, and what a model might write instead."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

ARITHMETIC = ("add", "subtract", "multiply", "divide", "exp")
LITERALS = ("3", "7.5", "-4", "12%", "1,250", "const_100", "const_2", "0.5", "60.94", "0", "1")
TABLE_OPERATIONS = ("table_sum", "table_average", "table_max", "table_min")

Expression = Any
"""A literal, or a tuple of an operation and its arguments."""


def expressions(literals: tuple[str, ...] = LITERALS, *, rows: bool = True) -> st.SearchStrategy[Expression]:
    """Trees of operations over literals, well typed: `greater` stands at the root only."""
    leaves: st.SearchStrategy[Expression] = st.sampled_from(literals)
    if rows:
        leaves = leaves | st.tuples(st.sampled_from(TABLE_OPERATIONS), st.sampled_from(["revenue", "loss"]))
    inner = st.recursive(leaves, lambda arg: st.tuples(st.sampled_from(ARITHMETIC), arg, arg), max_leaves=6)
    return inner | st.tuples(st.just("greater"), inner, inner)


def nested(expression: Expression) -> str:
    if isinstance(expression, str):
        return expression
    operation, *arguments = expression
    if operation.startswith("table"):
        return f"{operation}({arguments[0]}, none)"
    return f"{operation}({', '.join(map(nested, arguments))})"


def steps(expression: Expression, first: int = 0) -> list[tuple[str, str, str]]:
    """The steps in the order in which the nested spelling closes them, numbered from the first."""
    operations: list[tuple[str, str, str]] = []

    def write(node: Expression) -> str:
        if isinstance(node, str):
            return node
        operation, *arguments = node
        if operation.startswith("table"):
            operations.append((operation, arguments[0], "none"))
        else:
            left, right = map(write, arguments)
            operations.append((operation, left, right))
        return f"#{first + len(operations) - 1}"

    write(expression)
    return operations


def flat(expression: Expression, first: int = 0) -> str:
    if isinstance(expression, str):
        return expression
    return ", ".join(f"{operation}({left}, {right})" for operation, left, right in steps(expression, first))


def tokens(expression: Expression) -> list[str]:
    if isinstance(expression, str):
        return [expression, "EOF"]
    return [
        *(token for operation, left, right in steps(expression) for token in (f"{operation}(", left, right, ")")),
        "EOF",
    ]


_PIECES = (
    *(f"{operation}(" for operation in (*ARITHMETIC, *TABLE_OPERATIONS, "greater", "sqrt")),
    *LITERALS,
    *(")", "(", ",", ", ", " ", "#0", "#1", "#-1", "##0", "#", "none", "revenue", "loss", "EOF", "|", "%", "$5", ""),
    *("+", "-", "*", "/", "^", "**", ">", " x "),
    *("nan", "inf", "1_000", "1e308", "1e-400", "9" * 300, "\u22125", "\u0663", "\ud800", "\x00", "[", "{", "yes"),
)


def pieces() -> st.SearchStrategy[str]:
    return st.sampled_from(_PIECES)


def anything() -> st.SearchStrategy[Any]:
    """Text, tokens, plans and what is none of them."""
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | pieces() | st.text(max_size=8)
    json = st.recursive(
        scalars,
        lambda values: st.lists(values, max_size=4) | st.dictionaries(st.text(max_size=4), values, max_size=4),
        max_leaves=8,
    )
    return st.one_of(
        st.text(max_size=60),
        st.lists(pieces(), max_size=30).map("".join),
        st.lists(pieces(), max_size=30),
        expressions().map(flat),
        expressions().map(tokens),
        expressions().map(nested),
        plans(json),
        json,
    )


def plans(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    operand = values | st.fixed_dictionaries({"type": st.just("reference"), "step_ref": st.integers(-3, 5)})
    step = st.fixed_dictionaries(
        {"tool": st.sampled_from(["compute", "extract_value"])},
        optional={
            "step_id": st.integers(0, 5) | values,
            "operation": st.sampled_from([*ARITHMETIC, "percentage", "percentage_change", "table_sum"]) | values,
            "operands": st.lists(operand, max_size=4) | values,
            "value": values,
            "table_params": values | st.fixed_dictionaries({"row_query": values, "col_query": values}),
        },
    )
    return st.fixed_dictionaries({"steps": st.lists(step | values, max_size=6)})
