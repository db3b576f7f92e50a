"""WHILEs of which it is known how often they turn, or of which only an input knows."""

from __future__ import annotations

import numpy as np

from tests.models.build import Graph, Net


def counting(turns: int, *, elements: int = 1) -> bytes:
    """A WHILE that counts so far, and carries a tensor along, which its body adds to itself."""
    net = Net()
    main, test, body = net.graph("main"), net.graph("test"), net.graph("body")

    def ports(graph) -> tuple[int, int]:
        return graph.input("i", (1,), "int32"), graph.input("x", (elements,), scale=0.1)

    i, _ = ports(test)
    goes_on = test.tensor("goes_on", (1,), "bool")
    test.op("LESS", [i, test.constant("limit", [turns])], [goes_on], "LessOptions")
    test.outputs(goes_on)
    i, x = ports(body)
    more, sums = body.tensor("more", (1,), "int32"), body.tensor("sums", (elements,), scale=0.1)
    body.op("ADD", [i, body.constant("one", [1])], [more], "AddOptions")
    body.op("ADD", [x, x], [sums], "AddOptions")
    body.outputs(more, sums)
    x = main.input("x", (elements,), scale=0.1)
    zero = main.constant("zero", np.int32([0]))
    ends = main.tensor("end", (1,), "int32"), main.tensor("y", (elements,), scale=0.1)
    main.op("WHILE", [zero, x], [*ends], "WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=2)
    main.outputs(ends[1])
    return net.finish()


def changing(kind: str, *, limit: int | None, step: int = 2) -> bytes:
    """WHILE(i < limit): i = i `kind` step, from 1; the limit is an input where it is None."""
    net = Net()
    main, test, body = net.graph("main"), net.graph("test"), net.graph("body")

    def ports(graph: Graph) -> tuple[int, int]:
        return graph.input("i", (1,), "int32"), graph.input("n", (1,), "int32")

    i, n = ports(test)
    goes_on = test.tensor("goes_on", (1,), "bool")
    test.op("LESS", [i, n], [goes_on], "LessOptions")
    test.outputs(goes_on)
    i, n = ports(body)
    more = body.tensor("more", (1,), "int32")
    options = f"{kind.title()}Options"
    body.op(kind, [i, body.constant("step", [step])], [more], options)
    body.outputs(more, n)
    one = main.constant("one", np.int32([1]))
    bound = main.input("n", (1,), "int32") if limit is None else main.constant("n", [limit])
    ends = main.tensor("end", (1,), "int32"), main.tensor("m", (1,), "int32")
    main.op(
        "WHILE", [one, bound], [*ends], "WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=2
    )
    main.outputs(ends[0])
    return net.finish()
