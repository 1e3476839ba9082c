"""Where large buffers come from: `text()` is LLVM IR with `obtain`, `resize`, `length` and `dispose`, for `buffers.py`.

`obtain(size)` gives null where there is no memory; `resize(pointer, size)` need not keep what is in it, and disposes of
it where it gives null; `length` is 0 for what none of this has made, which `dispose` frees all the same.

Note [Pages of their own]
The C library would put large buffers into its heap as soon as one of that size has been freed, and holes in there stay
with the process: a call with a budget took a fifth more than it asked for. So each large buffer is a mapping of its
own, which can grow and shrink, with a page before it that holds its length and a mark. A buffer that begins a page but
is not marked came from the C library: the word before it is the length of a block there, which the mark cannot be.
Where another library than GNU's serves `malloc`, there need not be such a word, and it serves large buffers, too.
"""

from __future__ import annotations

import ctypes
import mmap

PAGE = 4096  # where large buffers begin
HUGE, MADV_HUGEPAGE = 4 << 20, 14  # bytes for which large pages are worth a system call, as NumPy does it
MARK = 0x7461_7065_6C65_7373  # no length of a block in the C library
MAY_MOVE = 1  # for mremap
SERVED = ("aligned_alloc", "malloc_usable_size")  # what every other library for memory has, too

COMMON = """
define internal i64 @in_pages(i64 %size) nounwind {
  %more = add i64 %size, PAGE_LESS_ONE
  %pages = and i64 %more, -PAGE
  ret i64 %pages
}

define internal void @advise(ptr %p, i64 %size) nounwind {
entry:
  %huge = icmp uge i64 %size, HUGE
  br i1 %huge, label %advise, label %done
advise:
  %rc = call i32 @madvise(ptr %p, i64 %size, i32 MADV)
  br label %done
done:
  ret void
}

declare void @free(ptr)
declare ptr @aligned_alloc(i64, i64)
declare i32 @madvise(ptr, i64, i32)
"""

OF_THE_SYSTEM = """
define internal ptr @mark(ptr %base, i64 %pages) nounwind {
  %p = getelementptr inbounds i8, ptr %base, i64 PAGE
  %lengths = getelementptr inbounds i8, ptr %p, i64 -16
  %marks = getelementptr inbounds i8, ptr %p, i64 -8
  store i64 %pages, ptr %lengths
  store i64 MARK, ptr %marks
  call void @advise(ptr %p, i64 %pages)
  ret ptr %p
}

define internal ptr @obtain(i64 %size) nounwind {
entry:
  %pages = call i64 @in_pages(i64 %size)
  %whole = add i64 %pages, PAGE
  %base = call ptr @mmap(ptr null, i64 %whole, i32 READ_WRITE, i32 PRIVATE_ANONYMOUS, i32 -1, i64 0)
  %failed = icmp eq ptr %base, inttoptr (i64 -1 to ptr)
  br i1 %failed, label %nothing, label %got
nothing:
  ret ptr null
got:
  %p = call ptr @mark(ptr %base, i64 %pages)
  ret ptr %p
}

; 0 for what is not ours.
define internal i64 @length(ptr %p) nounwind {
entry:
  %a = ptrtoint ptr %p to i64
  %rest = and i64 %a, PAGE_LESS_ONE
  %begins = icmp eq i64 %rest, 0
  br i1 %begins, label %look, label %other
look:
  %marks = getelementptr inbounds i8, ptr %p, i64 -8
  %mark = load i64, ptr %marks
  %marked = icmp eq i64 %mark, MARK
  br i1 %marked, label %ours, label %other
ours:
  %lengths = getelementptr inbounds i8, ptr %p, i64 -16
  %length = load i64, ptr %lengths
  ret i64 %length
other:
  ret i64 0
}

define internal void @dispose(ptr %p) nounwind {
entry:
  %length = call i64 @length(ptr %p)
  %ours = icmp ugt i64 %length, 0
  br i1 %ours, label %unmap, label %other
unmap:
  %base = getelementptr inbounds i8, ptr %p, i64 -PAGE
  %whole = add i64 %length, PAGE
  %rc = call i32 @munmap(ptr %base, i64 %whole)
  ret void
other:
  call void @free(ptr %p)
  ret void
}

define internal ptr @resize(ptr %p, i64 %size) nounwind {
entry:
  %length = call i64 @length(ptr %p)
  %from = add i64 %length, PAGE
  %pages = call i64 @in_pages(i64 %size)
  %to = add i64 %pages, PAGE
  %old = getelementptr inbounds i8, ptr %p, i64 -PAGE
  %base = call ptr (ptr, i64, i64, i32, ...) @mremap(ptr %old, i64 %from, i64 %to, i32 MAY_MOVE)
  %failed = icmp eq ptr %base, inttoptr (i64 -1 to ptr)
  br i1 %failed, label %nothing, label %got
nothing:
  call void @dispose(ptr %p)
  ret ptr null
got:
  %q = call ptr @mark(ptr %base, i64 %pages)
  ret ptr %q
}

declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare ptr @mremap(ptr, i64, i64, i32, ...)
"""

OF_THE_LIBRARY = """
define internal ptr @obtain(i64 %size) nounwind {
entry:
  %pages = call i64 @in_pages(i64 %size)
  %p = call ptr @aligned_alloc(i64 PAGE, i64 %pages)
  %failed = icmp eq ptr %p, null
  br i1 %failed, label %done, label %got
got:
  call void @advise(ptr %p, i64 %pages)
  br label %done
done:
  ret ptr %p
}

define internal i64 @length(ptr %p) nounwind {
  %length = call i64 @malloc_usable_size(ptr %p)
  ret i64 %length
}

define internal void @dispose(ptr %p) nounwind {
  call void @free(ptr %p)
  ret void
}

define internal ptr @resize(ptr %p, i64 %size) nounwind {
  call void @free(ptr %p)
  %q = call ptr @obtain(i64 %size)
  ret ptr %q
}

declare i64 @malloc_usable_size(ptr)
"""


def text() -> str:
    names = {
        "HUGE": HUGE, "MADV": MADV_HUGEPAGE, "PAGE_LESS_ONE": PAGE - 1, "PAGE": PAGE, "MARK": MARK, "MAY_MOVE": MAY_MOVE,
        "READ_WRITE": mmap.PROT_READ | mmap.PROT_WRITE, "PRIVATE_ANONYMOUS": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
    }  # fmt: skip
    return filled(COMMON + (OF_THE_SYSTEM if gnu_serves() else OF_THE_LIBRARY), names)


def filled(text: str, names: dict[str, int]) -> str:
    for name, number in names.items():
        text = text.replace(name, str(number))
    return text


def gnu_serves() -> bool:
    """Whether memory comes from the GNU library itself, as it does unless another one was put before it.

    `malloc` and `free` say nothing: a Python that is not position-independent (Debian's) has entries of its own for them.
    """
    try:
        own = ctypes.CDLL("libc.so.6")
        return all(_address(own, name) == _address(ctypes.CDLL(None), name) for name in SERVED)
    except (OSError, AttributeError):
        return False


def _address(library: ctypes.CDLL, name: str) -> int | None:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
