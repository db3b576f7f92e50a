"""Orders that cost no search: the file's own, and reverse post-order.

This module knows a DAG only.
"""

from __future__ import annotations

from tflm_planner.memory.order.dag import Dag


def file_order(dag: Dag) -> tuple[int, ...]:
    """The order of the file."""
    return tuple(range(len(dag.nodes)))


def reverse_post_order(dag: Dag) -> tuple[int, ...]:
    """Depth-first post-order from the sources, reversed: each branch runs up to its join.

    This is the scheduler of MOTES (section 4, `Schedule`); O(nodes + edges). Successors are visited
    in reverse file order, so that branches appear in file order.
    """
    succs = dag.links.succs
    seen = [False] * len(dag.nodes)
    done: list[int] = []
    sources = [i for i, p in enumerate(dag.links.preds) if not p]
    for source in reversed(sources):
        stack = [(source, False)]
        while stack:
            node, finished = stack.pop()
            if finished:
                done.append(node)
            elif not seen[node]:
                seen[node] = True
                stack.append((node, True))
                # The stack pops the last first, so successors are visited in reverse file order.
                stack.extend((s, False) for s in succs[node] if not seen[s])
    return tuple(reversed(done))
