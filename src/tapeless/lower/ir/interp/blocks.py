"""What the interpreter knows of a program's blocks before it runs: where local memory lives, and where threads wait.

Note [Local memory]
No statement makes a stack buffer, so it lives in the innermost block around all its uses, and is new and unwritten
each time that block is entered. In a parallel loop it is thereby private to an iteration unless it is used outside.
A shared buffer lives in the innermost such block outside of all block loops: one for each iteration of the grid.
"""

from __future__ import annotations

from tapeless.lower.ir.loopir import Barrier, Buffer, For, Program, Space, Stm, Tag
from tapeless.lower.ir.walk import buffers, children, walk


def with_barriers(program: Program) -> set[int]:
    """The ids of barriers and of the statements around them."""
    found: set[int] = set()
    for stm in reversed(list(walk(program.body))):  # those inside come first
        if isinstance(stm, Barrier) or any(id(inner) in found for block in children(stm) for inner in block):
            found.add(id(stm))
    return found


def local_buffers(program: Program) -> dict[int, list[Buffer]]:
    """Note [Local memory]: the stack and shared buffers of each block, by its id."""
    paths: dict[Buffer, list[tuple[int, Tag | None]]] = {}  # blocks from the outermost, each with the tag of its loop

    def visit(stms: tuple[Stm, ...], path: list[tuple[int, Tag | None]]) -> None:
        for stm in stms:
            for buffer in buffers(stm):
                known = paths.get(buffer, path)
                paths[buffer] = [here for here, there in zip(path, known, strict=False) if here == there]
            tag = stm.tag if isinstance(stm, For) else None
            for block in children(stm):
                visit(block, [*path, (id(block), tag)])

    visit(program.body, [(id(program.body), None)])
    found: dict[int, list[Buffer]] = {}
    for buffer, path in paths.items():
        if buffer.space is Space.shared:
            tags = [tag for _, tag in path]
            path = path[: tags.index(Tag.block)] if Tag.block in tags else path
        if buffer.space in (Space.stack, Space.shared):
            found.setdefault(path[-1][0], []).append(buffer)
    return found
