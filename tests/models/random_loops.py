"""Random WHILEs and IFs, nested ones too, whose variables are swapped, doubled, handed on and
overwritten.

All values have one shape and one scale, so that anything may take the place of anything. Every
draw comes from one generator: a seed is a model.
"""

from __future__ import annotations

import numpy as np

from tests.models.build import Graph, Net

SHAPE = (1, 4, 6, 2)
SIZE = 48
SCALE = 0.05


class _Loops:
    def __init__(self, seed: int, *, choices: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        self.net = Net("random loops")
        self.choices = choices
        self.count = 0

    def value(self, graph: Graph) -> int:
        self.count += 1
        return graph.tensor(f"v{self.count}", SHAPE, scale=SCALE)

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def pick(self, values: list[int]) -> int:
        return values[self.integer(0, len(values) - 1)]

    def operators(self, graph: Graph, values: list[int], depth: int, most: int) -> None:
        """Append random operators; their results join `values`."""
        for _ in range(self.integer(1, most)):
            kind = self.integer(0, 9)
            if kind < 3:
                y = self.value(graph)
                graph.op("LEAKY_RELU", [self.pick(values)], [y], "LeakyReluOptions", alpha=-0.9)
                values.append(y)
            elif kind < 5:
                y = self.value(graph)
                operands = [self.pick(values), self.pick(values)]
                graph.op("SUB", operands, [y], "SubOptions")
                values.append(y)
            elif kind < 8:
                values.append(self.updated(graph, values))
            elif depth:
                flow = self.choice if self.choices and self.rng.random() < 0.6 else self.loop
                values.extend(flow(graph, values, depth - 1))

    def updated(self, graph: Graph, values: list[int]) -> int:
        """Some bytes of one value put into another, both flat."""
        self.count += 1
        tag, length = self.count, self.integer(1, 20)
        flat, part, made = (
            graph.tensor(f"{n}{tag}", (size,), scale=SCALE)
            for n, size in (("flat", SIZE), ("part", length), ("made", SIZE))
        )
        other = graph.tensor(f"other{tag}", (SIZE,), scale=SCALE)
        for source, into in ((self.pick(values), flat), (self.pick(values), other)):
            graph.op("RESHAPE", [source], [into], "ReshapeOptions", newShape=[SIZE])
        begin = self.integer(0, SIZE - length)
        limits = [graph.constant(f"l{tag}{i}", [v])
                  for i, v in enumerate((begin, begin + length, 1))]  # fmt: skip
        graph.op("STRIDED_SLICE", [other, *limits], [part], "StridedSliceOptions")
        at = graph.constant(f"at{tag}", [self.integer(0, SIZE - length)])
        graph.op("DYNAMIC_UPDATE_SLICE", [flat, part, at], [made], "DynamicUpdateSliceOptions")
        y = self.value(graph)
        graph.op("RESHAPE", [made], [y], "ReshapeOptions", newShape=list(SHAPE))
        return y

    def loop(self, graph: Graph, values: list[int], depth: int) -> list[int]:
        """Append a WHILE over random values; its results."""
        self.count += 1
        tag, n = self.count, self.integer(1, 4)
        condition, body = self.net.graph(f"condition{tag}"), self.net.graph(f"body{tag}")
        starts = [self.pick(values) for _ in range(n)]
        if self.rng.random() < 0.3:
            fixed = self.rng.integers(-128, 128, SHAPE)
            starts[0] = graph.constant(f"start{tag}", fixed, "int8", scale=SCALE)
        counter = graph.constant(f"zero{tag}", [0])
        i = condition.input("i", (1,), "int32")
        for k in range(n):
            condition.input(f"c{k}", SHAPE, scale=SCALE)
        less = condition.tensor("less", (1,), "bool")
        limit = condition.constant("limit", [self.integer(0, 3)])
        condition.op("LESS", [i, limit], [less], "LessOptions")
        condition.outputs(less)
        j = body.input("i", (1,), "int32")
        inside = [body.input(f"b{k}", SHAPE, scale=SCALE) for k in range(n)]
        following = body.tensor("next", (1,), "int32")
        made = list(inside)
        self.operators(body, made, depth, 4)
        body.op("ADD", [j, body.constant("one", [1])], [following], "AddOptions")
        outs = [inside[k] if self.rng.random() < 0.25 else self.pick(made) for k in range(n)]
        body.outputs(following, *outs)
        last = graph.tensor(f"last{tag}", (1,), "int32")
        results = [self.value(graph) for _ in range(n)]
        graph.op("WHILE", [counter, *starts], [last, *results], "WhileOptions",
                 condSubgraphIndex=condition.index, bodySubgraphIndex=body.index)  # fmt: skip
        return results

    def choice(self, graph: Graph, values: list[int], depth: int) -> list[int]:
        """Append an IF over random values; its results."""
        self.count += 1
        tag, n, results = self.count, self.integer(1, 4), self.integer(1, 3)
        given = [self.pick(values) for _ in range(n)]
        branches = [self.net.graph(f"{name}{tag}") for name in ("then", "else")]
        for branch in branches:
            inside = [branch.input(f"i{k}", SHAPE, scale=SCALE) for k in range(n)]
            made = list(inside)
            if self.rng.random() < 0.9:
                self.operators(branch, made, depth, 4)
            branch.outputs(*(self.pick(made) for _ in range(results)))
        flag = graph.constant(f"flag{tag}", [self.rng.random() < 0.5], "bool")
        outs = [self.value(graph) for _ in range(results)]
        then, other = (b.index for b in branches)
        graph.op("IF", [flag, *given], outs, "IfOptions",
                 thenSubgraphIndex=then, elseSubgraphIndex=other)  # fmt: skip
        return outs


def random_loops_model(seed: int, *, choices: bool = False) -> bytes:
    """One or two inputs, operators and loops in any order, random outputs. choices: IFs too."""
    maker = _Loops(seed, choices=choices)
    graph = maker.net.graph()
    values = [graph.input(f"x{k}", SHAPE, scale=SCALE) for k in range(maker.integer(1, 2))]
    maker.operators(graph, values, 2, 2)
    if choices:
        values += maker.choice(graph, values, maker.integer(0, 2))
    values += maker.loop(graph, values, maker.integer(0, 1))
    maker.operators(graph, values, 1, 3)
    chosen = [v for v in values if maker.rng.random() < 0.3] or [values[-1]]
    last = maker.value(graph)
    graph.op("SUB", [values[-1], maker.pick(values)], [last], "SubOptions")
    graph.outputs(last, *dict.fromkeys(chosen))
    return maker.net.finish()
